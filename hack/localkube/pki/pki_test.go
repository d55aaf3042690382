// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"testing"
)

func parse(t *testing.T, p Pair) *x509.Certificate {
	t.Helper()
	if _, err := tls.X509KeyPair(p.Cert, p.Key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	b, _ := pem.Decode(p.Cert)
	cert, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestAuthoritySignsClientsAndServers(t *testing.T) {
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parse(t, ca.Pair))

	client, err := ca.Client("system:node:node1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	cert := parse(t, client)
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "system:node:node1" || len(cert.Subject.Organization) != 1 || cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject: %s", cert.Subject)
	}

	server, err := ca.Server("apiserver", []string{"kubernetes"}, netip.MustParseAddr("10.96.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	cert = parse(t, server)
	for _, name := range []string{"kubernetes", "10.96.0.1"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := cert.VerifyHostname("10.96.0.2"); err == nil {
		t.Error("it is valid for another address")
	}
}
