// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// certPeriod is how old the content of a Secret may be. The operator must not watch
	// Secrets: it would need the right to read all.
	certPeriod = 30 * time.Second
	// certRetry replaces it after a failed handshake, and while a Secret has a problem:
	// somebody may be fixing it.
	certRetry = 5 * time.Second
)

// certReader reads the Secrets of one cluster and remembers their content.
type certReader struct {
	held map[string]certcheck.Held // by use
	// readAt is when all of them were last read: they change together.
	readAt   time.Time
	versions map[string]string // of the Secrets, by name
	// distrust is true after a failed handshake.
	distrust bool

	// dialled is the identity of the client's connections, and whether they verify the
	// members.
	dialled      *etcd.Identity
	skipVerified bool
}

// observeCertificates reads the spec's Secrets if they are due, and updates the client with
// the operator's.
func (c *Cluster) observeCertificates(ctx context.Context, o *plan.Observation) error {
	if !c.ends(o) {
		if err := c.readCertificates(ctx, o.Now); err != nil {
			return err
		}
	}
	o.Certificates = certcheck.Judge(c.certs.held, o.Names, &o.Spec, o.Now)
	c.certForms = manifest.CertForms{Peer: c.certs.held["peer"].Form, Server: c.certs.held["server"].Form, Operator: c.certs.held["operator"].Form}
	c.cfg.Metrics.observeCertificates(c.obj, o.Certificates.Expiries)

	if !o.Spec.ClientTLS() {
		return nil
	}
	// A Secret that becomes unusable does not affect what is in use.
	id, skip := c.certs.held["operator"].ID, o.Spec.SkipsVerification()
	switch {
	case id == nil:
		o.Blind = "it has no usable certificate: " + c.certs.held["operator"].Why()
	case id != c.certs.dialled || skip != c.certs.skipVerified:
		c.etcd.SetTLS(id.ClientConfig(skip))
		c.certs.dialled, c.certs.skipVerified = id, skip
		c.log.WithField("secret", o.Spec.OperatorSecret()).Info("connecting to the members with the certificate of the Secret")
	}
	return nil
}

// readCertificates reads all Secrets if their content is old, or in doubt.
func (c *Cluster) readCertificates(ctx context.Context, now time.Time) error {
	r := &c.certs
	secrets := map[string]*corev1.Secret{}
	renamed, troubled := false, r.distrust
	for _, u := range certcheck.CertUses {
		name := u.Secret(&c.obj.Spec)
		h, known := r.held[u.Name]
		renamed = renamed || (name != "") != known || h.Secret != name
		troubled = troubled || h.Problem != nil
		if name != "" {
			secrets[name] = nil
		}
	}
	age := now.Sub(r.readAt)
	if !renamed && (len(secrets) == 0 || age < certRetry || age < certPeriod && !troubled) {
		return nil
	}
	problems, unread := map[string]*certcheck.CertProblem{}, map[string]error{}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		secret, err := c.cfg.Kube.CoreV1().Secrets(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			secrets[name] = secret
		case apierrors.IsNotFound(err):
			problems[name] = &certcheck.CertProblem{Reason: certcheck.SecretMissing, HoldsPods: true, Why: "does not exist: create it, "}
		case apierrors.IsForbidden(err):
			problems[name] = &certcheck.CertProblem{Reason: certcheck.SecretMissing, HoldsPods: true,
				Why: "can't be read by the operator: grant its service account to get Secrets: " + notice.ApplyRoles + "; "}
		default:
			unread[name] = err
			c.log.WithError(err).WithField("secret", name).Warn("can't read a Secret with certificates just now")
		}
	}
	held := map[string]certcheck.Held{}
	for _, u := range certcheck.CertUses {
		name := u.Secret(&c.obj.Spec)
		switch h := r.held[u.Name]; {
		case name == "":
		case unread[name] == nil:
			held[u.Name] = r.hold(u, name, secrets[name], problems[name])
		case ctx.Err() != nil || h.Secret != name:
			return fmt.Errorf("read Secret %s with certificates: %w", name, unread[name])
		default:
			held[u.Name] = h.Unread(u, unread[name])
		}
	}
	r.held, r.readAt, r.distrust = held, now, false
	r.versions = map[string]string{}
	for name, secret := range secrets {
		if secret != nil {
			r.versions[name] = string(secret.UID) + "/" + secret.ResourceVersion
		}
	}
	return nil
}

// hold stores the result of a read for a use. Valid content stays until there is better: the
// running members still have it.
func (r *certReader) hold(u certcheck.CertUse, name string, secret *corev1.Secret, problem *certcheck.CertProblem) certcheck.Held {
	h := r.held[u.Name]
	if h.Secret != name {
		h = certcheck.Held{Secret: name}
	}
	if problem != nil {
		h.Problem = &certcheck.CertProblem{Reason: problem.Reason, HoldsPods: problem.HoldsPods,
			Why: fmt.Sprintf("Secret %s (%s) %s%s", name, u.Field, problem.Why, u.Files.Wanted())}
		return h
	}
	if h.ID != nil && h.Problem == nil && r.versions[name] == string(secret.UID)+"/"+secret.ResourceVersion {
		return h
	}
	id, form, problem := u.IdentityIn(secret)
	if h.Problem = problem; problem == nil {
		h.ID, h.Form = id, form
	}
	return h
}

// conn returns the connection to a member. Without a certificate, the operator does not try:
// members would log each attempt as an intruder's.
func (c *Cluster) conn(o *plan.Observation, ep etcd.Endpoint) (Member, error) {
	if o.Spec.ClientTLS() && c.certs.dialled == nil {
		return nil, plan.ErrNoCertificate
	}
	return c.etcd.Conn(ep)
}

// seeTLS notes what the members' answers say about the certificates. A member that is down says nothing
// of them. If nobody answers, and those that refuse the operator may be a quorum, it may serve.
func (c *Cluster) seeTLS(o *plan.Observation, answers []answer) {
	var refusals []answer
	heard := false
	for _, a := range answers {
		heard = heard || a.err == nil
		if etcd.IsTLSFailure(a.err) {
			refusals = append(refusals, a)
		}
	}
	if len(refusals) == 0 {
		return
	}
	c.certs.distrust = true
	mayServe := len(refusals) >= etcd.Quorum(max(o.Status.Size, 1))
	if o.Blind == "" && !heard && (mayServe || len(refusals) == len(answers)) {
		o.Blind = "the TLS handshake with " + refusals[0].pod.Name + " failed: " + etcd.TLSCause(refusals[0].err)
	}
}

// template returns the current template of members. etcd reads the CAs of its certificates
// when it starts. The names of files in a pod follow the forms of its Secrets.
func (c *Cluster) template() (manifest.Template, error) {
	certificates := certcheck.CaDigest(c.certs.held, &c.obj.Spec)
	if certificates != "" {
		certificates += fmt.Sprint(c.certForms.Peer, c.certForms.Server)
	}
	t, err := manifest.TemplateOf(&c.obj.Spec, certificates)
	if peer := c.certs.held["peer"]; peer.ID != nil && peer.Problem == nil && err == nil {
		t.PeerCAs = strings.Join(peer.ID.CAs(), ",")
	}
	return t, err
}

// templateFor returns a template for the metadata of a pod, with the CAs only if the Secrets were read since its
// etcd has read them. If both reads were of one template, both were of the same CAs.
func (c *Cluster) templateFor(p manifest.PodState, t manifest.Template) manifest.Template {
	if !c.sightings.servedBefore(p, c.certs.readAt) {
		t.PeerCAs = ""
	}
	return t
}

// judgeMembers checks that the running members accept the certificate that the peer Secret has now. One that
// takes no part in the quorum does not count: it is cut off already, and the quorum is one of the others. Nor does
// a pod that has no member any more.
func (c *Cluster) judgeMembers(o *plan.Observation) {
	peer := c.certs.held["peer"]
	if peer.ID == nil {
		return
	}
	cas := map[string]string{}
	onVolumes := true
	for _, p := range o.Pods {
		if p.Deleting {
			continue
		}
		onVolumes = onVolumes && p.Claimed
		counts := !o.Quorum || o.HasMember(func(m plan.MemberState) bool { return m.PodName == p.Name && m.Healthy() })
		if p.Running && p.PeerCAs != "" && counts {
			cas[p.Name] = p.PeerCAs
		}
	}
	o.Certificates.JudgeMembers(peer, cas, o.Now)
	if len(o.Certificates.Refusing) == 0 || onVolumes && len(o.Members) <= 1 && o.Spec.Size == 1 {
		return // it has no peers, and starts with the new CAs
	}
	restart := ""
	if onVolumes {
		restart = fmt.Sprintf("kubectl delete pods -n %s -l %s=%s", o.Names.Namespace, api.ClusterLabel, o.Names.Cluster)
	}
	o.Certificates.HoldMembers(peer, o.Names, restart, o.RestartsRefusing(), slices.ContainsFunc(o.Voters(), o.TriesEdit))
}

// certificatesDue reports whether the content of the Secrets is old.
func (c *Cluster) certificatesDue(now time.Time) bool {
	return len(c.certs.held) > 0 && now.Sub(c.certs.readAt) >= certPeriod
}
