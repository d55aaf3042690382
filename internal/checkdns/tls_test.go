// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// authority signs certificates of members.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{key: newKey(t)}
	a.cert = sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "peers"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, a, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate for a key; an authority without one signs itself.
func sign(t *testing.T, template *x509.Certificate, by authority, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent := by.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// certify writes the files of a member, valid for the host, whose peers' CA is
// ca.
func (a authority) certify(t *testing.T, dir, host string, ca authority) Certificate {
	t.Helper()
	key := newKey(t)
	cert := sign(t, &x509.Certificate{
		DNSNames: []string{host}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{Cert: filepath.Join(dir, "peer.crt"), Key: filepath.Join(dir, "peer.key"), CA: filepath.Join(dir, "peer-ca.crt")}
	for file, block := range map[string]*pem.Block{
		c.Cert: {Type: "CERTIFICATE", Bytes: cert.Raw},
		c.Key:  {Type: "PRIVATE KEY", Bytes: der},
		c.CA:   {Type: "CERTIFICATE", Bytes: ca.cert.Raw},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// peerListener serves the membership {itself, c} to those whose certificate the
// authority signed, as etcd does. It returns its URL by the name localhost.
func peerListener(t *testing.T, a authority, host string) string {
	t.Helper()
	config, err := a.certify(t, t.TempDir(), host, a).load()
	if err != nil {
		t.Fatal(err)
	}
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, config.RootCAs
	var url string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `[{"id":1,"peerURLs":["%s"],"name":"a"},{"id":2,"peerURLs":["https://c:2380"]}]`, url)
	}))
	server.TLS = config
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return url
}

// joining is the configuration of a member that waits for the one at url.
func joining(t *testing.T, url string, cert Certificate, timeout time.Duration) Config {
	t.Helper()
	transport := PeerTransport(cert)
	t.Cleanup(transport.CloseIdleConnections)
	return Config{
		Name: "localhost", Timeout: timeout, Resolver: PureResolver(), Out: &bytes.Buffer{},
		InitialCluster: expect(t, "a="+url+",c=https://c:2380"), Peers: []string{url},
		Certificate: cert, Transport: transport,
	}
}

func TestShowsThePeersItsCertificate(t *testing.T) {
	a := newAuthority(t)
	url := peerListener(t, a, "localhost")
	if err := Run(t.Context(), joining(t, url, a.certify(t, t.TempDir(), "c", a), time.Minute)); err != nil {
		t.Error(err)
	}
}

// endsAtTheSecond calls end after the second attempt that was not cut off. The error of the first one
// is reported by then. On a busy machine, a handshake can outlast its attempt.
type endsAtTheSecond struct {
	http.RoundTripper
	calls atomic.Int32
	end   func()
}

func (e *endsAtTheSecond) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.RoundTripper.RoundTrip(req)
	if !errors.Is(err, context.DeadlineExceeded) && e.calls.Add(1) == 2 {
		e.end()
	}
	return resp, err
}

func TestSaysWhatIsWrongWithTheCertificates(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	for name, tc := range map[string]struct {
		cert Certificate
		host string // that the peer's certificate is for
		want string
	}{
		"signed by another CA than the peers trust": {stranger.certify(t, t.TempDir(), "c", a), "localhost", "certificate"},
		"a CA that did not sign the peers'":         {a.certify(t, t.TempDir(), "c", stranger), "localhost", "unknown authority"},
		"a peer of another name":                    {a.certify(t, t.TempDir(), "c", a), "elsewhere", "not localhost"},
		"no files":                                  {Certificate{"/nowhere/peer.crt", "/nowhere/peer.key", "/nowhere/peer-ca.crt"}, "localhost", "/nowhere/peer.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cfg := joining(t, peerListener(t, a, tc.host), tc.cert, time.Minute)
			cfg.Transport = &endsAtTheSecond{RoundTripper: cfg.Transport, end: cancel}
			err := Run(ctx, cfg)
			if err == nil {
				t.Fatal("joins")
			}
			for _, want := range []string{tc.want, "no member answers", "must also be valid for the name"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, err)
				}
			}
		})
	}
}

func TestACAFileMustHoldACertificate(t *testing.T) {
	a := newAuthority(t)
	cert := a.certify(t, t.TempDir(), "c", a)
	if err := os.WriteFile(cert.CA, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cert.load(); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("got %v", err)
	}
}

// mender corrects the files after the first call has failed.
type mender struct {
	http.RoundTripper
	mend func()
}

func (m *mender) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := m.RoundTripper.RoundTrip(req)
	if err != nil && m.mend != nil {
		m.mend()
		m.mend = nil
	}
	return resp, err
}

func TestTakesUpCertificatesThatArePutRightMeanwhile(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	cfg := joining(t, peerListener(t, a, "localhost"), stranger.certify(t, dir, "c", stranger), time.Minute)
	m := &mender{cfg.Transport, func() { a.certify(t, dir, "c", a) }}
	cfg.Transport = m
	if err := Run(t.Context(), cfg); err != nil {
		t.Error(err)
	}
	if m.mend != nil {
		t.Error("the first call was answered")
	}
}

// calls remembers when the first came.
type calls struct {
	http.RoundTripper
	first time.Time
	count int
}

func (c *calls) RoundTrip(req *http.Request) (*http.Response, error) {
	if c.count++; c.count == 1 {
		c.first = time.Now()
	}
	return c.RoundTripper.RoundTrip(req)
}

func TestPeersThatCheckNamesAreCalledWhenThereIsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		cert Certificate
		want time.Duration
	}{
		"with certificates": {Certificate{"a", "b", "c"}, firstLookup + 2*lookupInterval},
		"in plain text":     {Certificate{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				transport := &calls{RoundTripper: peers{"a": knows("a", "c")}}
				err := Run(t.Context(), Config{
					Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{errNoSuchHost, errNoSuchHost, "10.0.0.1"}}, Out: &bytes.Buffer{},
					InitialCluster: expect(t, "a=http://a,c=http://c"), Peers: []string{"http://a"},
					Certificate: tc.cert, Transport: transport,
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := transport.first.Sub(start); got != tc.want {
					t.Errorf("first called after %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestPeersThatTurnItAwayAreSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		transport := &calls{RoundTripper: peers{}}
		err := Run(ctx, Config{
			Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "a=http://a,c=http://c"), Peers: []string{"http://a"}, Transport: transport,
		})
		if err == nil {
			t.Fatal("joins")
		}
		fast, slow := int(patience/peersInterval), int((10*time.Minute-patience)/patientInterval)
		if transport.count < fast+slow-2 || transport.count > fast+slow+2 {
			t.Errorf("%d calls in ten minutes, want %d", transport.count, fast+slow)
		}
	})
}

// net/http gives a connection more time than its request, and this one would have no end. Where other
// members make check-dns wait for its turn, it asks such a peer for hours.
func TestAConnectionToAPeerThatSaysNothingEnds(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	transport := PeerTransport(a.certify(t, t.TempDir(), "c", a))
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), peerTimeout/4)
	defer cancel()
	if _, _, err := membersOf(ctx, transport, "https://"+silent.Addr().String()); err == nil {
		t.Fatal("a peer that says nothing has answered")
	}
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(3 * handshakeTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("check-dns keeps the connection: %v", err)
	}
}
