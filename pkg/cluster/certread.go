// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// certPeriod is how old what is known of a Secret may be. The operator has no
	// right to watch Secrets: it would have to see those of others for it.
	certPeriod = 30 * time.Second
	// certRetry takes its place after a handshake that failed, and while
	// something is wrong with a Secret: somebody may be at it.
	certRetry = 5 * time.Second
)

// errNoCertificate is why a member is not asked.
var errNoCertificate = errors.New("the operator has no certificate to ask it with")

// certReader reads the Secrets of one cluster and remembers what they held.
type certReader struct {
	held map[string]heldCert // by use
	// readAt is when they were last read, all of them: what belongs together is
	// changed together.
	readAt   time.Time
	versions map[string]string // of the Secrets, by name
	// distrust is true after a handshake that failed.
	distrust bool

	// dialled is the identity that the client's connections have, and whether
	// they verify the members.
	dialled      *etcd.Identity
	skipVerified bool
}

// observeCertificates reads the Secrets that the spec names, if it is time to, and
// makes the client use what is in the operator's.
func (c *Cluster) observeCertificates(ctx context.Context, o *observation) error {
	if !o.ending {
		if err := c.readCertificates(ctx, o.now); err != nil {
			return err
		}
	}
	o.certificates = judge(c.certs.held, o.names, &o.spec, o.now)
	c.certForms = certForms{peer: c.certs.held["peer"].form, server: c.certs.held["server"].form, operator: c.certs.held["operator"].form}
	c.cfg.Metrics.observeCertificates(c.obj, o.certificates.expiries)

	if !o.spec.ClientTLS() {
		return nil
	}
	// A Secret that has become unusable takes nothing from what is in use.
	id, skip := c.certs.held["operator"].id, o.spec.SkipsVerification()
	switch {
	case id == nil:
		o.blind = "it has no usable certificate: " + c.certs.held["operator"].why()
	case id != c.certs.dialled || skip != c.certs.skipVerified:
		c.etcd.SetTLS(id.ClientConfig(skip))
		c.certs.dialled, c.certs.skipVerified = id, skip
		c.log.WithField("secret", o.spec.OperatorSecret()).Info("connecting to the members with the certificate of the Secret")
	}
	return nil
}

func (h heldCert) why() string {
	if h.problem == nil {
		return "its Secret was not read yet"
	}
	return h.problem.why
}

// readCertificates reads all Secrets if what is known of them is old, or in doubt.
func (c *Cluster) readCertificates(ctx context.Context, now time.Time) error {
	r := &c.certs
	secrets := map[string]*corev1.Secret{}
	renamed, troubled := false, r.distrust
	for _, u := range certUses {
		name := u.secret(&c.obj.Spec)
		h, known := r.held[u.name]
		renamed = renamed || (name != "") != known || h.secret != name
		troubled = troubled || h.problem != nil
		if name != "" {
			secrets[name] = nil
		}
	}
	age := now.Sub(r.readAt)
	if !renamed && (len(secrets) == 0 || age < certRetry || age < certPeriod && !troubled) {
		return nil
	}
	problems, unread := map[string]*certProblem{}, map[string]error{}
	for name := range secrets {
		secret, err := c.cfg.Kube.CoreV1().Secrets(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			secrets[name] = secret
		case apierrors.IsNotFound(err):
			problems[name] = &certProblem{reason: secretMissing, holdsPods: true, why: "does not exist: create it, "}
		case apierrors.IsForbidden(err):
			problems[name] = &certProblem{reason: secretMissing, holdsPods: true,
				why: "can't be read by the operator: grant its service account to get Secrets (example/rbac/create_role.sh); "}
		default:
			unread[name] = err
			c.log.WithError(err).WithField("secret", name).Warn("can't read a Secret with certificates just now")
		}
	}
	held := map[string]heldCert{}
	for _, u := range certUses {
		name := u.secret(&c.obj.Spec)
		switch h := r.held[u.name]; {
		case name == "":
		case unread[name] == nil:
			held[u.name] = r.hold(u, name, secrets[name], problems[name])
		case ctx.Err() != nil || h.secret != name:
			return fmt.Errorf("read Secret %s with certificates: %w", name, unread[name])
		default:
			held[u.name] = h.unread(u, unread[name])
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

// hold takes over what was read for a use. What was read well before stays where
// nothing better comes: members that run have it still.
func (r *certReader) hold(u certUse, name string, secret *corev1.Secret, problem *certProblem) heldCert {
	h := r.held[u.name]
	if h.secret != name {
		h = heldCert{secret: name}
	}
	if problem != nil {
		h.problem = &certProblem{reason: problem.reason, holdsPods: problem.holdsPods,
			why: fmt.Sprintf("Secret %s (%s) %s%s", name, u.field, problem.why, u.files.Wanted())}
		return h
	}
	if h.id != nil && h.problem == nil && r.versions[name] == string(secret.UID)+"/"+secret.ResourceVersion {
		return h
	}
	id, form, problem := u.identityIn(secret)
	if h.problem = problem; problem == nil {
		h.id, h.form = id, form
	}
	return h
}

// unread is what is held of a Secret that the API server can't give now. That says
// nothing about the Secret: what was read stays, and what was wrong with it.
func (h heldCert) unread(u certUse, err error) heldCert {
	if h.problem == nil {
		reason := apierrors.ReasonForError(err)
		if reason == metav1.StatusReasonUnknown {
			reason = "no answer"
		}
		h.problem = &certProblem{reason: secretNotRead, why: fmt.Sprintf("Secret %s (%s) can't be read just now (%s): the operator goes on with what it has read before; "+
			"look at the API server, and at what encrypts its Secrets", h.secret, u.field, reason)}
	}
	return h
}

// conn is the connection to a member. Without a certificate of its own the
// operator doesn't try: members would log each attempt as one of an intruder.
func (c *Cluster) conn(o *observation, ep etcd.Endpoint) (Member, error) {
	if o.spec.ClientTLS() && c.certs.dialled == nil {
		return nil, errNoCertificate
	}
	return c.etcd.Conn(ep)
}

// seeTLS takes note of what the members' answers say about the certificates.
func (c *Cluster) seeTLS(o *observation, answers []answer) {
	failed := 0
	for _, a := range answers {
		if etcd.IsTLSFailure(a.err) {
			failed++
		}
	}
	c.certs.distrust = c.certs.distrust || failed > 0
	if o.blind == "" && failed > 0 && failed == len(answers) {
		o.blind = "the TLS handshake with " + answers[0].pod.name + " failed: " + etcd.TLSCause(answers[0].err)
	}
}
