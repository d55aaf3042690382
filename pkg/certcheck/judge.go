// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certcheck

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// Certificates is what the operator knows about the Secrets with a cluster's certificates. The
// zero value is for a cluster without TLS.
type Certificates struct {
	Used     bool
	Problems []CertProblem // the worst first
	Expiries []CertExpiry
	// CaDigest changes with the CAs by which members know each other and clients. etcd reads
	// those only when it starts. It is "" without TLS, and if a Secret was never readable:
	// then nothing follows from it.
	CaDigest string
	// MembersHeld says why the operator must not add members, restart or replace any: members
	// refuse the certificate that they show to each other. "" if they accept it.
	MembersHeld string
	// Refusing are the pods of running members that are sure to refuse that certificate, and Accepting those of
	// members that are sure to accept it. The CAs of the others are unknown.
	Refusing, Accepting []string
}

// CertProblem is a problem with the certificates that needs an action.
type CertProblem struct {
	Reason string // of the condition CertificatesValid
	// Why names Secret and key, and says what to do. It does not change from pass to pass.
	Why string
	// HoldsPods is true if the pods of members could not start.
	HoldsPods bool
	// HoldsStart is true if the operator would not see a new cluster's first member, or
	// further members could not join it.
	HoldsStart bool
}

// Reasons of the condition CertificatesValid, the worst first.
const (
	SecretMissing       = "Secret Missing"
	KeyMissing          = "Key Missing"
	CertificateInvalid  = "Certificate Invalid"
	CertificateExpired  = "Certificate Expired"
	NameNotCovered      = "Name Not Covered"
	secretNotRead       = "Secret Not Read"
	CertificateExpiring = "Certificate Expiring"
)

var certReasons = []string{SecretMissing, KeyMissing, CertificateInvalid, CertificateExpired, NameNotCovered, secretNotRead, CertificateExpiring}

// CertExpiry is when the first certificate of a Secret expires, including CAs.
type CertExpiry struct {
	Use string
	At  time.Time
}

// Held is what the operator knows about the Secret of one use.
type Held struct {
	Secret string // its name
	// ID is the last valid content; nil: there was none.
	ID   *etcd.Identity
	Form certsecret.Form
	// Problem is what is wrong with the last content; nil: nothing.
	Problem *CertProblem
}

// Judge checks the certificates. held has the spec's uses, by their names.
func Judge(held map[string]Held, n manifest.Names, spec *api.ClusterSpec, now time.Time) Certificates {
	c := Certificates{Used: len(held) > 0, CaDigest: CaDigest(held, spec)}
	add := func(reason string, holdsStart bool, format string, args ...any) string {
		p := CertProblem{Reason: reason, Why: fmt.Sprintf(format, args...), HoldsStart: holdsStart}
		if !slices.Contains(c.Problems, p) {
			c.Problems = append(c.Problems, p)
		}
		return p.Why
	}
	sound := map[string]*etcd.Identity{}
	for _, u := range CertUses {
		h, used := held[u.Name]
		switch {
		case !used:
			continue
		case h.Problem != nil:
			c.Problems = append(c.Problems, *h.Problem)
			if h.Problem.Reason != secretNotRead { // otherwise check the identity in held
				continue
			}
		}
		sound[u.Name] = h.ID
		c.Expiries = append(c.Expiries, CertExpiry{u.Name, h.ID.Validities()[0].To})
		judgeDates(add, u, h, now)
	}
	judgeNames(add, held, sound, n, spec)
	if refusal := judgeTrust(add, held, sound, spec, now); spec.Size > 1 {
		c.MembersHeld = refusal
	}
	c.sort()
	return c
}

func (c *Certificates) sort() {
	slices.SortStableFunc(c.Problems, func(a, b CertProblem) int {
		return cmp.Compare(slices.Index(certReasons, a.Reason), slices.Index(certReasons, b.Reason))
	})
}

// JudgeMembers finds out which running members accept the peer certificate. cas are the CAs that their pods
// hold, separated by commas, by the names of the pods.
func (c *Certificates) JudgeMembers(peer Held, cas map[string]string, now time.Time) {
	refused := map[string]bool{} // by the CAs, of which most members hold the same
	for _, pod := range slices.Sorted(maps.Keys(cas)) {
		list := cas[pod]
		if _, known := refused[list]; !known {
			refused[list] = peer.ID.RefusedBy(strings.Split(list, ","), now)
		}
		if refused[list] {
			c.Refusing = append(c.Refusing, pod)
		}
	}
	if len(c.Refusing) == 0 || peer.Problem != nil || !peer.ID.AcceptedBy(peer.ID.CAs(), now) {
		return // or a member that restarts would refuse the others
	}
	for _, pod := range slices.Sorted(maps.Keys(cas)) {
		if peer.ID.AcceptedBy(strings.Split(cas[pod], ","), now) {
			c.Accepting = append(c.Accepting, pod)
		}
	}
}

// HoldMembers holds the members because some refuse the peer certificate. restart is the command that restarts
// all members with their data; "" if their data would be lost. singly are those that the operator restarts. edited
// means that a member has not served since an edit of the spec: another one that restarts might not, either.
func (c *Certificates) HoldMembers(peer Held, n manifest.Names, restart string, singly []string, edited bool) {
	certKey, _, caKey := CertUses[0].Files.Keys(peer.Form)
	way := fmt.Sprintf("put back a certificate that the former CA has signed, with both CAs in %s, wait until all members have restarted, then exchange the certificate; "+
		"if the key of the former CA is lost, ", caKey)
	switch {
	case len(singly) > 0:
		way = fmt.Sprintf("enough of the others accept it, so the operator restarts %s, one at a time while all members are healthy and Kubernetes accepts the pod",
			strings.Join(singly, ", "))
		if !edited {
			way += fmt.Sprintf("; if one of the others stays down, delete one pod of these (kubectl delete pod -n %s %s): "+
				"it returns on its volume and accepts the certificate, and writes may wait until then", n.Namespace, singly[0])
		}
	case restart != "":
		way += "delete all pods at once (" + restart + "): they return on their volumes after a short outage"
	default:
		way += "back up and restore the cluster, because a member loses its data with its pod"
	}
	why := fmt.Sprintf("Secret %s: running members refuse the certificate in %s, because they know only the CAs that they read at their start: connections that break do not come back; %s",
		peer.Secret, certKey, way)
	c.Problems = append(c.Problems, CertProblem{Reason: CertificateInvalid, Why: why})
	c.MembersHeld = why
	c.sort()
}

type addProblem func(reason string, holdsStart bool, format string, args ...any) string

func judgeDates(add addProblem, u CertUse, h Held, now time.Time) {
	certKey, _, caKey := u.Files.Keys(h.Form)
	for _, v := range h.ID.Validities() {
		what, advice := "the certificate in "+certKey, "renew it"
		if v.CA != "" {
			what = "the CA " + notice.Shorten(v.CA, 100) + " in " + caKey
			advice = "put its successor beside it, renew what it has signed, then take it out"
		}
		switch {
		case now.After(v.To):
			add(CertificateExpired, false, "Secret %s: %s expired at %s: %s", h.Secret, what, Date(v.To), advice)
		case now.Before(v.From):
			add(CertificateInvalid, false, "Secret %s: %s is not valid before %s: check the clocks, or renew it", h.Secret, what, Date(v.From))
		case v.To.Sub(now) < api.CertificateWarning:
			add(CertificateExpiring, false, "Secret %s: %s expires at %s: %s", h.Secret, what, Date(v.To), advice)
		}
	}
}

// Date formats the time at which a certificate expires.
func Date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judgeNames checks that the certificates cover future members, whose names are not known yet.
func judgeNames(add addProblem, held map[string]Held, sound map[string]*etcd.Identity, n manifest.Names, spec *api.ClusterSpec) {
	host := n.Host(n.Cluster + "-xxxxxxxxxx")
	wildcard := "*" + n.Domain()
	said := func(id *etcd.Identity) string { return orNothing(id.Names()) }
	if id := sound["peer"]; id != nil {
		switch secret := held["peer"].Secret; {
		case !id.Covers(host):
			add(NameNotCovered, spec.Size > 1, "Secret %s: the certificate is for %s, and not for the members' names: members could not join; renew it for %s", secret, said(id), wildcard)
		case !id.PassesPeerCheck(host, n.ClusterDomain != ""):
			add(NameNotCovered, false, "Secret %s: the certificate is for %s alone, but etcd also looks up the names of the addresses that its peers connect from, "+
				"and Kubernetes answers with its domain behind them: renew it for %s as well (with your cluster's domain)", secret, said(id), wildcard+".cluster.local")
		}
	}
	if id := sound["server"]; id != nil && !spec.SkipsVerification() && !id.Covers(host) {
		add(NameNotCovered, true, "Secret %s: the certificate is for %s, and not for the members' names: the operator can't distinguish them from others; renew it for %s",
			held["server"].Secret, said(id), wildcard)
	}
}

// judgeTrust checks that the parties accept each other's certificates. It returns why members refuse each
// other; "" if they do not.
func judgeTrust(add addProblem, held map[string]Held, sound map[string]*etcd.Identity, spec *api.ClusterSpec, now time.Time) (refusal string) {
	for _, t := range []struct {
		by, of string
		role   etcd.Role
		then   string
		skip   bool
	}{
		{"peer", "peer", etcd.AsServer, "members refuse each other", false},
		{"peer", "peer", etcd.AsClient, "members refuse each other", false},
		{"operator", "server", etcd.AsServer, "the operator refuses the members", spec.SkipsVerification()},
		{"server", "operator", etcd.AsClient, "the members refuse the operator", false},
	} {
		by, of := sound[t.by], sound[t.of]
		if by == nil || of == nil || t.skip {
			continue
		}
		err := by.Accepts(of, t.role, now)
		certKey, caKey := fileKeys(held, t.of, t.by)
		cert := fmt.Sprintf("the certificate in %s of Secret %s", certKey, held[t.of].Secret)
		why := ""
		switch {
		case err == nil:
			continue
		case errors.Is(err, etcd.ErrOutOfDate):
			// An earlier problem names the dates; this one names the consequence.
			why = add(CertificateExpired, true, "%s is out of date, or its CA is: %s", cert, t.then)
		case errors.Is(err, etcd.ErrUnknownCA):
			why = add(CertificateInvalid, true, "%s is signed by none of the CAs in %s of Secret %s: %s; put its CA in there, beside the others",
				cert, caKey, held[t.by].Secret, t.then)
		case errors.Is(err, etcd.ErrUsage):
			why = add(CertificateInvalid, true, "%s is not for use as a %s (extended key usage): %s; renew it for that use", cert, t.role, t.then)
		default:
			why = add(CertificateInvalid, true, "%s: %v: %s", cert, err, t.then)
		}
		if t.by == "peer" {
			refusal = why
		}
	}
	return refusal
}

// fileKeys returns the keys of one use's certificate and of another use's CAs.
func fileKeys(held map[string]Held, certOf, caOf string) (certKey, caKey string) {
	for _, u := range CertUses {
		cert, _, ca := u.Files.Keys(held[u.Name].Form)
		if u.Name == certOf {
			certKey = cert
		}
		if u.Name == caOf {
			caKey = ca
		}
	}
	return certKey, caKey
}

// CaDigest returns the digest of the CAs that members read when they start: those of the peer
// and the server Secret. For an unreadable Secret, the last content counts.
func CaDigest(held map[string]Held, spec *api.ClusterSpec) string {
	if !spec.PeerTLS() && !spec.ClientTLS() {
		return ""
	}
	sum := sha256.New()
	for _, use := range []string{"peer", "server"} {
		h, used := held[use]
		switch {
		case !used:
			continue
		case h.ID == nil:
			return ""
		}
		sum.Write([]byte(use + " " + h.ID.CADigest() + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// UnknownCAs reports whether the CAs by which members know each other are unknown: the
// operator must not assume a change then.
func (c *Certificates) UnknownCAs() bool { return c.Used && c.CaDigest == "" }

// Hold says why the operator must not create pods of members, or start a cluster; "" if it
// may.
func (c *Certificates) Hold(starting bool) string {
	var whys []string
	for _, p := range c.Problems {
		if p.HoldsPods || starting && p.HoldsStart {
			whys = append(whys, p.Why)
		}
	}
	return strings.Join(whys, "; ")
}

// Why says why the Secret is not usable.
func (h Held) Why() string {
	if h.Problem == nil {
		return "its Secret was not read yet"
	}
	return h.Problem.Why
}

// Unread returns the state of a Secret that the API server can't return now. That says nothing
// about the Secret: the last content stays, and its problem.
func (h Held) Unread(u CertUse, err error) Held {
	if h.Problem == nil {
		reason := apierrors.ReasonForError(err)
		if reason == metav1.StatusReasonUnknown {
			reason = "no answer"
		}
		h.Problem = &CertProblem{Reason: secretNotRead, Why: fmt.Sprintf("Secret %s (%s) can't be read just now (%s): the operator continues with its last content; "+
			"look at the API server, and at what encrypts its Secrets", h.Secret, u.Field, reason)}
	}
	return h
}
