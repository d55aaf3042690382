// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// hosts remembers who was called, and with which addresses at hand.
type hosts struct {
	http.RoundTripper
	called []string
	known  []bool
}

func (h *hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	h.called = append(h.called, req.URL.Host)
	h.known = append(h.known, req.Context().Value(addressesKey{}) != nil && len(addressesOf(req.Context())) > 0)
	return h.RoundTripper.RoundTrip(req)
}

// A DNS server that keeps denials answers "no such host" for 30 s after a look-up that came
// before the name was published: nobody looks up a name where an address is known.
func TestPeersOfKnownAddressesAreAskedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		transport := &hosts{RoundTripper: peers{"seed": knows("seed", "b", "c")}}
		d := &dns{answers: []any{errNoSuchHost}}
		err := Run(t.Context(), Config{
			Name: "c", SkipName: true, Timeout: time.Minute, Resolver: d, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "seed=http://seed,b=http://b,c=http://c"), Peers: []string{"http://b", "http://seed"},
			Addresses: map[string]netip.Addr{"seed": netip.MustParseAddr("10.0.0.1")}, Transport: transport,
		})
		if err != nil || time.Since(start) != 0 {
			t.Errorf("%v, after %s", err, time.Since(start))
		}
		if !slices.Equal(transport.called, []string{"seed"}) || !slices.Equal(transport.known, []bool{true}) || d.lookups != 0 {
			t.Errorf("called %v, addresses known %v, %d look-ups", transport.called, transport.known, d.lookups)
		}
	})
}

// A known address may be that of another pod by now.
func TestPeersThatDoNotAnswerAtTheirKnownAddressesAreAskedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		transport := &hosts{RoundTripper: peers{"b": knows("seed", "b", "c")}}
		err := Run(t.Context(), Config{
			Name: "c", SkipName: true, Timeout: time.Minute, Resolver: &dns{}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "seed=http://seed,b=http://b,c=http://c"), Peers: []string{"http://b", "http://seed"},
			Addresses: map[string]netip.Addr{"seed": netip.MustParseAddr("10.0.0.1")}, Transport: transport,
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < trust || took > trust+2*patientInterval {
			t.Errorf("after %s, want some more than %s", took, trust)
		}
		if last := len(transport.known) - 1; transport.known[last] {
			t.Error("it continues with the address that did not answer")
		}
	})
}

// Peers with certificates look up who calls them: its name has to be published before.
func TestPeersThatLookUpTheirCallersAreNotCalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		transport := &calls{RoundTripper: peers{"a": knows("a", "c")}}
		err := Run(t.Context(), Config{
			Name: "c", SkipName: true, Timeout: time.Minute, Resolver: &dns{}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "a=http://a,c=http://c"), Peers: []string{"http://a"},
			Certificate: Certificate{"a", "b", "c"}, Transport: transport,
		})
		if got := transport.first.Sub(start); err != nil || got != firstContact {
			t.Errorf("first called after %s: %v", got, err)
		}
	})
}

func TestAMemberWithoutPeersNeedsNoName(t *testing.T) {
	d := &dns{answers: []any{errNoSuchHost}}
	if err := Run(t.Context(), Config{Name: "c", SkipName: true, Timeout: time.Minute, Resolver: d, Out: &bytes.Buffer{}}); err != nil || d.lookups != 0 {
		t.Errorf("%v, %d look-ups", err, d.lookups)
	}
}

// The certificate of a peer is for its name, wherever it is dialled.
func TestAKnownAddressIsDialledInThePlaceOfTheName(t *testing.T) {
	a := newAuthority(t)
	url := strings.Replace(peerListener(t, a, "a.c.ns.svc"), "localhost", "a.c.ns.svc", 1)
	cfg := joining(t, url, a.certify(t, t.TempDir(), "c", a), time.Minute)
	cfg.SkipName, cfg.Addresses = true, map[string]netip.Addr{"a.c.ns.svc": netip.MustParseAddr("127.0.0.1")}
	all, _, err := membersOf(withAddresses(t.Context(), cfg.Addresses), cfg.Transport, url)
	if err != nil || len(all) != 2 {
		t.Errorf("members %v: %v", all, err)
	}
	if _, _, err := membersOf(withAddresses(t.Context(), map[string]netip.Addr{"a.c.ns.svc": netip.MustParseAddr("127.0.0.2")}), PeerTransport(cfg.Certificate), url); err == nil {
		t.Error("it is dialled elsewhere")
	}
}

func TestAddressesAreReadFromFlags(t *testing.T) {
	cfg, err := Parse([]string{"-name=c", "-skip-name", "-address=a.c.ns.svc=10.0.0.1", "-address=b.c.ns.svc=fd00::7"}, noEnv, &bytes.Buffer{})
	if err != nil || !cfg.SkipName || cfg.Addresses["a.c.ns.svc"] != netip.MustParseAddr("10.0.0.1") || cfg.Addresses["b.c.ns.svc"] != netip.MustParseAddr("fd00::7") {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, bad := range []string{"a", "=10.0.0.1", "a=b"} {
		if _, err := Parse([]string{"-name=c", "-address=" + bad}, noEnv, &bytes.Buffer{}); err == nil {
			t.Errorf("-address=%s is taken", bad)
		}
	}
}
