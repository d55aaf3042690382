// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// certificates is what is known of the Secrets with certificates that a cluster
// uses. The zero value is that of a cluster without TLS.
type certificates struct {
	used     bool
	problems []certProblem // the worst first
	expiries []certExpiry
	// caDigest changes with the CAs by which members know each other and clients.
	// etcd reads those once, when it starts. It is "" without TLS, and where a
	// Secret could never be read: then nothing follows from it.
	caDigest string
}

// certProblem is something about the certificates that somebody has to act on.
type certProblem struct {
	reason string // of the condition CertificatesValid
	// why names Secret and key, and says what to do. It doesn't change from pass
	// to pass.
	why string
	// holdsPods is true where the pods of members could not start.
	holdsPods bool
	// holdsStart is true where the operator would not see a new cluster's first
	// member, or further ones could not join it.
	holdsStart bool
}

// Reasons of the condition CertificatesValid, the worst first.
const (
	secretMissing       = "Secret Missing"
	keyMissing          = "Key Missing"
	certificateInvalid  = "Certificate Invalid"
	certificateExpired  = "Certificate Expired"
	nameNotCovered      = "Name Not Covered"
	secretNotRead       = "Secret Not Read"
	certificateExpiring = "Certificate Expiring"
)

var certReasons = []string{secretMissing, keyMissing, certificateInvalid, certificateExpired, nameNotCovered, secretNotRead, certificateExpiring}

// certExpiry is when the first certificate of a Secret expires, CAs included.
type certExpiry struct {
	use string
	at  time.Time
}

// heldCert is what is known of the Secret of one use.
type heldCert struct {
	secret string // its name
	// id is what was last read well; nil before.
	id   *etcd.Identity
	form certsecret.Form
	// problem is what is wrong with what was read last; nil if nothing is.
	problem *certProblem
}

// judge tells what the certificates are good for. held has the uses that the spec
// has, by their names.
func judge(held map[string]heldCert, n names, spec *api.ClusterSpec, now time.Time) certificates {
	c := certificates{used: len(held) > 0, caDigest: caDigest(held, spec)}
	add := func(reason string, holdsStart bool, format string, args ...any) {
		p := certProblem{reason: reason, why: fmt.Sprintf(format, args...), holdsStart: holdsStart}
		if !slices.Contains(c.problems, p) {
			c.problems = append(c.problems, p)
		}
	}
	sound := map[string]*etcd.Identity{}
	for _, u := range certUses {
		h, used := held[u.name]
		switch {
		case !used:
			continue
		case h.problem != nil:
			c.problems = append(c.problems, *h.problem)
			if h.problem.reason != secretNotRead { // else what is held is judged
				continue
			}
		}
		sound[u.name] = h.id
		c.expiries = append(c.expiries, certExpiry{u.name, h.id.Validities()[0].To})
		judgeDates(add, u, h, now)
	}
	judgeNames(add, held, sound, n, spec)
	judgeTrust(add, held, sound, spec, now)
	slices.SortStableFunc(c.problems, func(a, b certProblem) int {
		return cmp.Compare(slices.Index(certReasons, a.reason), slices.Index(certReasons, b.reason))
	})
	return c
}

type addProblem func(reason string, holdsStart bool, format string, args ...any)

func judgeDates(add addProblem, u certUse, h heldCert, now time.Time) {
	certKey, _, caKey := u.files.Keys(h.form)
	for _, v := range h.id.Validities() {
		what, advice := "the certificate in "+certKey, "renew it"
		if v.CA != "" {
			what = "the CA " + notice.Shorten(v.CA, 100) + " in " + caKey
			advice = "put its successor beside it, renew what it has signed, then take it out"
		}
		switch {
		case now.After(v.To):
			add(certificateExpired, false, "Secret %s: %s expired at %s: %s", h.secret, what, date(v.To), advice)
		case now.Before(v.From):
			add(certificateInvalid, false, "Secret %s: %s is not valid before %s: check the clocks, or renew it", h.secret, what, date(v.From))
		case v.To.Sub(now) < api.CertificateWarning:
			add(certificateExpiring, false, "Secret %s: %s expires at %s: %s", h.secret, what, date(v.To), advice)
		}
	}
}

func date(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// judgeNames asks whether the members to come are covered, whose names are made
// up when they come.
func judgeNames(add addProblem, held map[string]heldCert, sound map[string]*etcd.Identity, n names, spec *api.ClusterSpec) {
	host := n.host(n.cluster + "-xxxxxxxxxx")
	wildcard := "*" + n.domain()
	said := func(id *etcd.Identity) string { return orNothing(id.Names()) }
	if id := sound["peer"]; id != nil {
		switch secret := held["peer"].secret; {
		case !id.Covers(host):
			add(nameNotCovered, spec.Size > 1, "Secret %s: the certificate is for %s, and not for the members' names: members could not join; renew it for %s", secret, said(id), wildcard)
		case !id.PassesPeerCheck(host, n.clusterDomain != ""):
			add(nameNotCovered, false, "Secret %s: the certificate is for %s alone, but etcd also looks up the names of the addresses that its peers connect from, "+
				"and Kubernetes answers with its domain behind them: renew it for %s as well (with your cluster's domain)", secret, said(id), wildcard+".cluster.local")
		}
	}
	if id := sound["server"]; id != nil && !spec.SkipsVerification() && !id.Covers(host) {
		add(nameNotCovered, true, "Secret %s: the certificate is for %s, and not for the members' names: the operator can't tell them from others; renew it for %s",
			held["server"].secret, said(id), wildcard)
	}
}

// judgeTrust asks whether those who talk to each other accept each other's
// certificates.
func judgeTrust(add addProblem, held map[string]heldCert, sound map[string]*etcd.Identity, spec *api.ClusterSpec, now time.Time) {
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
		cert := fmt.Sprintf("the certificate in %s of Secret %s", certKey, held[t.of].secret)
		switch {
		case err == nil:
		case errors.Is(err, etcd.ErrOutOfDate):
			// The dates were told, but not what follows from them.
			add(certificateExpired, true, "%s is out of date, or its CA is: %s", cert, t.then)
		case errors.Is(err, etcd.ErrUnknownCA):
			add(certificateInvalid, true, "%s is signed by none of the CAs in %s of Secret %s: %s; put its CA in there, beside the others",
				cert, caKey, held[t.by].secret, t.then)
		case errors.Is(err, etcd.ErrUsage):
			add(certificateInvalid, true, "%s is not for use as a %s (extended key usage): %s; renew it for that use", cert, t.role, t.then)
		default:
			add(certificateInvalid, true, "%s: %v: %s", cert, err, t.then)
		}
	}
}

// fileKeys are the keys of the certificate of one use and of the CAs of another.
func fileKeys(held map[string]heldCert, certOf, caOf string) (certKey, caKey string) {
	for _, u := range certUses {
		cert, _, ca := u.files.Keys(held[u.name].form)
		if u.name == certOf {
			certKey = cert
		}
		if u.name == caOf {
			caKey = ca
		}
	}
	return certKey, caKey
}

// caDigest is that of the CAs which members read when they start: those of the
// peer and the server Secret. A Secret that can't be read now counts as it was.
func caDigest(held map[string]heldCert, spec *api.ClusterSpec) string {
	if !spec.PeerTLS() && !spec.ClientTLS() {
		return ""
	}
	sum := sha256.New()
	for _, use := range []string{"peer", "server"} {
		h, used := held[use]
		switch {
		case !used:
			continue
		case h.id == nil:
			return ""
		}
		sum.Write([]byte(use + " " + h.id.CADigest() + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// unknownCAs tells whether it is not known by which CAs members know each other:
// nothing may be taken to have changed then.
func (c *certificates) unknownCAs() bool { return c.used && c.caDigest == "" }

// hold says why no pods of members may be made, or no cluster be started; "" if
// they may.
func (c *certificates) hold(starting bool) string {
	var whys []string
	for _, p := range c.problems {
		if p.holdsPods || starting && p.holdsStart {
			whys = append(whys, p.why)
		}
	}
	return strings.Join(whys, "; ")
}
