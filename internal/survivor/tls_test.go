// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// secure gives a server certificates of a CA, which replace those that it has.
func secure(t *testing.T, s *Server, ca *etcdtest.CA) {
	t.Helper()
	if s.Cert == "" {
		dir := t.TempDir()
		s.Cert, s.Key, s.CA = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")
	}
	cert, key := ca.Issue(etcdtest.Leaf{Name: "member", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	must(t, os.WriteFile(s.Cert, cert, 0o600))
	must(t, os.WriteFile(s.Key, key, 0o600))
	must(t, os.WriteFile(s.CA, ca.PEM, 0o600))
}

// clientOf has a certificate of a CA for a user, and trusts another CA's servers.
func clientOf(t *testing.T, ca, trusted *etcdtest.CA, user string) *tls.Config {
	t.Helper()
	cert, key := ca.Issue(etcdtest.Leaf{Name: user})
	pair, err := tls.X509KeyPair(cert, key)
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted.PEM)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
}

func TestOverTLSClientsNeedACertificate(t *testing.T) {
	server, _ := newServer(newData(t).dir, closedPort)
	ca, stranger := etcdtest.NewCA(t, "etcd"), etcdtest.NewCA(t, "stranger")
	secure(t, server, ca)
	endpoints := []etcd.Endpoint{start(t, server)}
	take(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, ca, ca, "anybody")})

	without := clientOf(t, ca, ca, "anybody")
	without.GetClientCertificate = nil
	old := clientOf(t, ca, ca, "anybody")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, config := range map[string]*tls.Config{
		"no certificate": without, "a certificate of another CA": clientOf(t, stranger, ca, "anybody"), "an old version of TLS": old,
	} {
		s, err := open(t, snapshot.Source{Endpoints: endpoints, TLS: config})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, snapshot.ErrNoMember) || !etcd.IsTLSFailure(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	endpoints[0].URL = strings.Replace(endpoints[0].URL, "https", "http", 1)
	if _, err := open(t, snapshot.Source{Endpoints: endpoints}); !errors.Is(err, snapshot.ErrNoMember) {
		t.Errorf("plain text: %v", err)
	}
}

func TestTheCommonNameIsTheUser(t *testing.T) {
	d := newData(t)
	d.enableAuth(t)
	server, _ := newServer(d.dir, closedPort)
	ca := etcdtest.NewCA(t, "etcd")
	secure(t, server, ca)
	src := snapshot.Source{Endpoints: []etcd.Endpoint{start(t, server)}}
	for _, user := range []string{"root", "certified"} {
		src.TLS = clientOf(t, ca, ca, user)
		take(t, src)
	}
	for _, user := range []string{"reader", "unknown", ""} {
		src.TLS = clientOf(t, ca, ca, user)
		s, err := open(t, src)
		if err == nil {
			_ = s.Close()
		}
		if !etcd.IsDenied(err) {
			t.Errorf("user %q: %v", user, err)
		}
	}
	// A user that logs in counts more than the certificate's.
	src.User = etcd.Credentials{Username: "root", Password: "secret"}
	take(t, src)
	src.TLS, src.User = clientOf(t, ca, ca, "root"), etcd.Credentials{Username: "reader", Password: "secret"}
	if _, err := open(t, src); !etcd.IsDenied(err) {
		t.Errorf("a reader with the certificate of root: %v", err)
	}
}

func TestRenewedCertificatesCountAtTheNextConnection(t *testing.T) {
	server, log := newServer(newData(t).dir, closedPort)
	before, after := etcdtest.NewCA(t, "before"), etcdtest.NewCA(t, "after")
	secure(t, server, before)
	endpoints := []etcd.Endpoint{start(t, server)}
	take(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, before, before, "anybody")})
	secure(t, server, after)
	take(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, after, after, "anybody")})
	if s, err := open(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, before, after, "anybody")}); !etcd.IsTLSFailure(err) {
		if err == nil {
			_ = s.Close()
		}
		t.Errorf("a client of the former CA: %v", err)
	}

	must(t, os.Remove(server.Key))
	if _, err := open(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, after, after, "anybody")}); !errors.Is(err, snapshot.ErrNoMember) {
		t.Errorf("without a key: %v", err)
	}
	if !strings.Contains(log.String(), server.Key) {
		t.Errorf("the log does not name the key:\n%s", log)
	}
	secure(t, server, after)
	take(t, snapshot.Source{Endpoints: endpoints, TLS: clientOf(t, after, after, "anybody")})
}
