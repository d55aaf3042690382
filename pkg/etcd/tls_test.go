// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// serving is a member's TLS: it shows a certificate for names, and wants one of
// the client that its CA has signed.
func serving(t *testing.T, ca *etcdtest.CA, names ...string) *tls.Config {
	t.Helper()
	cert, key := ca.Issue(etcdtest.Leaf{Name: "server", DNS: names})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
}

const host = "a.c.ns.svc.invalid"

func TestAMemberIsVerifiedByItsNameThoughDialledByItsAddress(t *testing.T) {
	ours, theirs := etcdtest.NewCA(t, "ours"), etcdtest.NewCA(t, "theirs")
	for name, c := range map[string]struct {
		server *tls.Config // of the member
		client *tls.Config
		fails  bool
	}{
		"both know each other":               {serving(t, ours, host), identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(false), false},
		"a wildcard":                         {serving(t, ours, "*.c.ns.svc.invalid"), identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(false), false},
		"another name":                       {serving(t, ours, "b.c.ns.svc.invalid"), identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(false), true},
		"another name, without verification": {serving(t, ours, "other"), identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(true), false},
		"another CA":                         {serving(t, theirs, host), identity(t, theirs, etcdtest.Leaf{}, ours).ClientConfig(false), true},
		"another CA, without verification":   {serving(t, theirs, host), identity(t, theirs, etcdtest.Leaf{}, ours).ClientConfig(true), false},
		"a client that the member refuses":   {serving(t, ours, host), identity(t, theirs, etcdtest.Leaf{}, ours).ClientConfig(false), true},
		"a client without a certificate":     {serving(t, ours, host), &tls.Config{RootCAs: serving(t, ours).ClientCAs}, true},
		"a member that speaks plain text":    {nil, identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(false), true},
	} {
		t.Run(name, func(t *testing.T) {
			m := (&etcdtest.Member{TLS: c.server, Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
			client := etcd.NewClient(c.client)
			t.Cleanup(client.Close)
			conn, err := client.Conn(etcd.Endpoint{URL: "https://" + host + ":" + m.Port, IP: m.IP})
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Status(soon(t))
			if (err != nil) != c.fails {
				t.Fatalf("status: %v", err)
			}
			if err != nil && !etcd.IsTLSFailure(err) {
				t.Errorf("it is not taken for a failure of TLS: %v", err)
			}
		})
	}
}

func TestTheVersionIsAskedOverTLS(t *testing.T) {
	ca := etcdtest.NewCA(t, "ca")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"etcdserver":"3.6.16","etcdcluster":"3.6.0"}`))
	}))
	server.TLS = serving(t, ca, host)
	server.StartTLS()
	t.Cleanup(server.Close)
	ip, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	client := etcd.NewClient(identity(t, ca, etcdtest.Leaf{}, ca).ClientConfig(false))
	t.Cleanup(client.Close)
	conn, err := client.Conn(etcd.Endpoint{URL: "https://" + host + ":" + port, IP: ip})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := conn.ClusterVersion(soon(t)); err != nil || v.String() != "3.6.0" {
		t.Errorf("%v, %v", v, err)
	}
	client.SetTLS(identity(t, ca, etcdtest.Leaf{}, etcdtest.NewCA(t, "another")).ClientConfig(false))
	if conn, err = client.Conn(etcd.Endpoint{URL: "https://" + host + ":" + port, IP: ip}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ClusterVersion(soon(t)); !etcd.IsTLSFailure(err) {
		t.Errorf("after the change of CA: %v", err)
	}
}

func TestNewCredentialsTakeThePlaceOfTheOld(t *testing.T) {
	ours, theirs := etcdtest.NewCA(t, "ours"), etcdtest.NewCA(t, "theirs")
	m := (&etcdtest.Member{TLS: serving(t, ours, host), Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
	client := etcd.NewClient(identity(t, theirs, etcdtest.Leaf{}, ours).ClientConfig(false))
	t.Cleanup(client.Close)
	status := func() error {
		conn, err := client.Conn(etcd.Endpoint{URL: "https://" + host + ":" + m.Port, IP: m.IP})
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Status(soon(t))
		return err
	}
	if err := status(); !etcd.IsTLSFailure(err) {
		t.Fatalf("a stranger's status: %v", err)
	}
	client.SetTLS(identity(t, ours, etcdtest.Leaf{}, ours).ClientConfig(false))
	if err := status(); err != nil {
		t.Fatalf("after the change: %v", err)
	}
	client.SetTLS(identity(t, theirs, etcdtest.Leaf{}, ours).ClientConfig(false))
	if err := status(); !etcd.IsTLSFailure(err) {
		t.Fatalf("after the change back: %v", err)
	}
}
