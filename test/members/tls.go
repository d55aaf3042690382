// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// TLS is a CA for a cluster whose members demand its certificates from clients.
type TLS struct {
	ca  *etcdtest.CA
	dir string
}

// NewTLS makes a CA and a certificate for members.
func NewTLS(t testing.TB) *TLS {
	t.Helper()
	s := &TLS{ca: etcdtest.NewCA(t, "etcd"), dir: t.TempDir()}
	cert, key := s.ca.Issue(etcdtest.Leaf{Name: "member", DNS: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	for name, content := range map[string][]byte{"ca.crt": s.ca.PEM, "member.crt": cert, "member.key": key} {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ClientConfig is for a client whose certificate names a user of etcd.
func (s *TLS) ClientConfig(t testing.TB, user string) *tls.Config {
	t.Helper()
	cert, key := s.ca.Issue(etcdtest.Leaf{Name: user})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

// Files are those of the members: a certificate, its key, and the CA of clients.
func (s *TLS) Files() (cert, key, ca string) {
	return filepath.Join(s.dir, "member.crt"), filepath.Join(s.dir, "member.key"), filepath.Join(s.dir, "ca.crt")
}

func (s *TLS) serverFlags() []string {
	cert, key, ca := s.Files()
	return []string{"--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth"}
}
