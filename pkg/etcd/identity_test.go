// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// identity has a certificate that one CA has signed and trusts others.
func identity(t *testing.T, by *etcdtest.CA, leaf etcdtest.Leaf, trusts ...*etcdtest.CA) *etcd.Identity {
	t.Helper()
	cert, key := by.Issue(leaf)
	var bundle []byte
	for _, ca := range trusts {
		bundle = append(bundle, ca.PEM...)
	}
	return parse(t, cert, key, bundle)
}

func parse(t *testing.T, cert, key, ca []byte) *etcd.Identity {
	t.Helper()
	id, err := etcd.ParseIdentity(etcd.PEMFile{Name: "tls.crt", Content: cert}, etcd.PEMFile{Name: "tls.key", Content: key}, etcd.PEMFile{Name: "ca.crt", Content: ca})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnIdentityThatCanNotBeReadIsNamedWithoutItsContent(t *testing.T) {
	ca := etcdtest.NewCA(t, "ca")
	cert, key := ca.Issue(etcdtest.Leaf{Name: "a"})
	_, otherKey := ca.Issue(etcdtest.Leaf{Name: "b"})
	secret := []byte("-----BEGIN hunter2-----\naHVudGVyMg==\n-----END hunter2-----\n")
	for name, c := range map[string]struct {
		cert, key, ca []byte
		want          string
	}{
		"no certificate":            {nil, key, ca.PEM, "tls.crt holds no certificate"},
		"text for a certificate":    {[]byte("hunter2"), key, ca.PEM, "tls.crt holds no certificate"},
		"a key in the certificates": {append(cert, key...), key, ca.PEM, "tls.crt holds something else"},
		"a broken certificate":      {[]byte("-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n"), key, ca.PEM, "tls.crt holds a certificate that can't be read"},
		"no key":                    {cert, nil, ca.PEM, "tls.key holds no private key"},
		"another's key":             {cert, otherKey, ca.PEM, "tls.key is not the private key of tls.crt"},
		"something else for a key":  {cert, secret, ca.PEM, "tls.key is not the private key of tls.crt"},
		"no CA":                     {cert, key, nil, "ca.crt holds no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := etcd.ParseIdentity(etcd.PEMFile{Name: "tls.crt", Content: c.cert}, etcd.PEMFile{Name: "tls.key", Content: c.key}, etcd.PEMFile{Name: "ca.crt", Content: c.ca})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("the error quotes the content: %v", err)
			}
		})
	}
}

func TestTheCADigestIsThatOfTheSet(t *testing.T) {
	a, b := etcdtest.NewCA(t, "a"), etcdtest.NewCA(t, "b")
	cert, key := a.Issue(etcdtest.Leaf{})
	digest := func(files ...[]byte) string { return parse(t, cert, key, slices.Concat(files...)).CADigest() }
	text := []byte("the CA of the test\n")
	if digest(a.PEM, b.PEM) != digest(b.PEM, text, a.PEM, b.PEM) {
		t.Error("order, comments and repetition count")
	}
	if digest(a.PEM) == digest(b.PEM) || digest(a.PEM) == digest(a.PEM, b.PEM) {
		t.Error("different sets have the same digest")
	}
	if got := digest(a.PEM); len(got) != 64 {
		t.Errorf("digest %q", got)
	}
}

func TestValiditiesBeginWithTheFirstToExpire(t *testing.T) {
	soon := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	old, young := etcdtest.NewCAUntil(t, "old", soon), etcdtest.NewCA(t, "young")
	list := identity(t, young, etcdtest.Leaf{}, young, old).Validities()
	if len(list) != 3 || list[0].CA != "CN=old" || !list[0].To.Equal(soon) || list[1].CA != "" || list[2].CA != "CN=young" {
		t.Errorf("validities %v", list)
	}
}

func TestAccepts(t *testing.T) {
	now := time.Now()
	ours, theirs := etcdtest.NewCA(t, "ours"), etcdtest.NewCA(t, "theirs")
	expired := etcdtest.NewCAUntil(t, "expired", now.Add(-time.Hour))
	server, client := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for name, c := range map[string]struct {
		by     *etcdtest.CA
		leaf   etcdtest.Leaf
		trusts []*etcdtest.CA
		role   etcd.Role
		want   error
	}{
		"one that our CA has signed":          {ours, etcdtest.Leaf{}, []*etcdtest.CA{ours}, etcd.AsServer, nil},
		"one of a bundle of CAs":              {theirs, etcdtest.Leaf{}, []*etcdtest.CA{ours, theirs}, etcd.AsClient, nil},
		"one that an unknown CA has signed":   {theirs, etcdtest.Leaf{}, []*etcdtest.CA{ours}, etcd.AsClient, etcd.ErrUnknownCA},
		"a client's as a client's":            {ours, etcdtest.Leaf{Usages: client}, []*etcdtest.CA{ours}, etcd.AsClient, nil},
		"a server's as a client's":            {ours, etcdtest.Leaf{Usages: server}, []*etcdtest.CA{ours}, etcd.AsClient, etcd.ErrUsage},
		"a client's as a server's":            {ours, etcdtest.Leaf{Usages: client}, []*etcdtest.CA{ours}, etcd.AsServer, etcd.ErrUsage},
		"one that has expired":                {ours, etcdtest.Leaf{To: now.Add(-time.Minute)}, []*etcdtest.CA{ours}, etcd.AsServer, etcd.ErrOutOfDate},
		"one of tomorrow":                     {ours, etcdtest.Leaf{From: now.Add(time.Hour)}, []*etcdtest.CA{ours}, etcd.AsServer, etcd.ErrOutOfDate},
		"one whose CA has expired":            {expired, etcdtest.Leaf{From: now.Add(-90 * time.Minute)}, []*etcdtest.CA{expired}, etcd.AsServer, etcd.ErrOutOfDate},
		"one beside a CA that has expired":    {ours, etcdtest.Leaf{}, []*etcdtest.CA{expired, ours}, etcd.AsServer, nil},
		"one that has expired, of a stranger": {theirs, etcdtest.Leaf{To: now.Add(-time.Minute)}, []*etcdtest.CA{ours}, etcd.AsServer, etcd.ErrUnknownCA},
	} {
		t.Run(name, func(t *testing.T) {
			other := identity(t, c.by, c.leaf, ours)
			if err := identity(t, ours, etcdtest.Leaf{}, c.trusts...).Accepts(other, c.role, now); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// A member reads its CAs when it starts, and the others' certificates at each handshake.
func TestRefusedBy(t *testing.T) {
	now := time.Now()
	a, b, twin := etcdtest.NewCA(t, "a"), etcdtest.NewCA(t, "b"), etcdtest.NewCA(t, "a")
	inner := etcdtest.NewCA(t, "inner").SignedBy(b)
	type cas = []*etcdtest.CA
	for name, c := range map[string]struct {
		held   cas
		by     *etcdtest.CA
		leaf   etcdtest.Leaf
		chain  cas // behind the leaf
		trusts cas

		want, accepted bool
	}{
		"the same CA":                        {cas{a}, a, etcdtest.Leaf{}, nil, cas{a}, false, true},
		"another CA":                         {cas{a}, b, etcdtest.Leaf{}, nil, cas{b}, true, false},
		"another CA of the same name":        {cas{a}, twin, etcdtest.Leaf{}, nil, cas{twin}, true, false},
		"another CA beside the former":       {cas{a}, b, etcdtest.Leaf{}, nil, cas{a, b}, true, false},
		"another CA that is announced":       {cas{a}, a, etcdtest.Leaf{}, nil, cas{a, b}, false, true},
		"another CA that was announced":      {cas{a, b}, b, etcdtest.Leaf{}, nil, cas{a, b}, false, true},
		"the former CA is gone":              {cas{a, b}, b, etcdtest.Leaf{}, nil, cas{b}, false, true},
		"a renewed CA":                       {cas{a}, a, etcdtest.Leaf{}, nil, cas{a.SignedBy(a)}, false, true},
		"the former CA is gone too early":    {cas{a}, a, etcdtest.Leaf{}, nil, cas{b}, false, false},
		"out of date":                        {cas{a}, a, etcdtest.Leaf{To: now.Add(-time.Minute)}, nil, cas{a}, false, false},
		"out of date, of another CA":         {cas{a}, b, etcdtest.Leaf{To: now.Add(-time.Minute)}, nil, cas{b}, true, false},
		"an inner CA":                        {cas{b}, inner, etcdtest.Leaf{}, cas{inner}, cas{b}, false, true},
		"an inner CA of another one":         {cas{a}, inner, etcdtest.Leaf{}, cas{inner}, cas{b}, true, false},
		"an inner CA as the only one":        {cas{b}, inner, etcdtest.Leaf{}, cas{inner}, cas{inner}, false, false},
		"a new CA that the former one signs": {cas{a}, b, etcdtest.Leaf{}, cas{b.SignedBy(a)}, cas{b}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, key := c.by.Issue(c.leaf)
			var bundle []byte
			for _, ca := range c.chain {
				cert = append(cert, ca.PEM...)
			}
			for _, ca := range c.trusts {
				bundle = append(bundle, ca.PEM...)
			}
			held := identity(t, a, etcdtest.Leaf{}, c.held...).CAs()
			if got := parse(t, cert, key, bundle).RefusedBy(held, now); got != c.want {
				t.Errorf("refused: %t", got)
			}
			if got := parse(t, cert, key, bundle).AcceptedBy(held, now); got != c.accepted {
				t.Errorf("accepted: %t", got)
			}
		})
	}
}

func TestTheCAsAreThoseOfTheSet(t *testing.T) {
	a, b := etcdtest.NewCA(t, "a"), etcdtest.NewCA(t, "b")
	one, other := identity(t, a, etcdtest.Leaf{}, a, b), identity(t, b, etcdtest.Leaf{}, b, a.SignedBy(a), a)
	if got := one.CAs(); len(got) != 2 || len(got[0]) != 16 || !slices.Equal(got, other.CAs()) {
		t.Errorf("%q and %q", got, other.CAs())
	}
}

func TestACertificateThatSignedItselfIsItsOwnCA(t *testing.T) {
	ca := etcdtest.NewCA(t, "self")
	other := identity(t, ca, etcdtest.Leaf{}, ca)
	cert, key := ca.Issue(etcdtest.Leaf{})
	self := parse(t, cert, key, cert)
	if err := self.Accepts(self, etcd.AsServer, time.Now()); err != nil {
		t.Error(err)
	}
	if err := self.Accepts(other, etcd.AsServer, time.Now()); !errors.Is(err, etcd.ErrUnknownCA) {
		t.Errorf("%v", err)
	}
	if n := len(self.Validities()); n != 1 {
		t.Errorf("%d validities of one certificate", n)
	}
}

func TestCoversAndPassesPeerCheck(t *testing.T) {
	const host = "c-abc.c.ns.svc"
	ca := etcdtest.NewCA(t, "ca")
	for name, c := range map[string]struct {
		leaf                         etcdtest.Leaf
		covers, passes, passesAsFQDN bool
	}{
		"the wildcard alone":              {etcdtest.Leaf{DNS: []string{"*.c.ns.svc"}}, true, false, true},
		"with the cluster's domain":       {etcdtest.Leaf{DNS: []string{"*.c.ns.svc", "*.c.ns.svc.cluster.local"}}, true, true, true},
		"the cluster's domain alone":      {etcdtest.Leaf{DNS: []string{"*.c.ns.svc.cluster.local"}}, false, true, false},
		"of another cluster":              {etcdtest.Leaf{DNS: []string{"*.d.ns.svc"}}, false, true, false},
		"with a name that may resolve":    {etcdtest.Leaf{DNS: []string{"*.c.ns.svc", "c.ns.svc"}}, true, true, true},
		"with localhost":                  {etcdtest.Leaf{DNS: []string{"*.c.ns.svc", "localhost"}}, true, false, true},
		"with addresses":                  {etcdtest.Leaf{DNS: []string{"*.c.ns.svc"}, IPs: []net.IP{{10, 0, 0, 1}}}, true, true, true},
		"without names":                   {etcdtest.Leaf{Name: host}, false, true, true},
		"for the namespace, which is not": {etcdtest.Leaf{DNS: []string{"*.ns.svc"}}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			id := identity(t, ca, c.leaf, ca)
			if got := id.Covers(host); got != c.covers {
				t.Errorf("Covers is %t", got)
			}
			if got := id.PassesPeerCheck(host, false); got != c.passes {
				t.Errorf("PassesPeerCheck is %t", got)
			}
			if got := id.PassesPeerCheck(host, true); got != c.passesAsFQDN {
				t.Errorf("PassesPeerCheck of a complete name is %t", got)
			}
		})
	}
}
