// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dns answers the n-th lookup with the n-th answer, and later ones with the last.
type dns struct {
	answers []any // error or address
	lookups int
}

func (d *dns) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	a := d.answers[min(d.lookups, len(d.answers)-1)]
	d.lookups++
	if err, ok := a.(error); ok {
		return nil, err
	}
	return []netip.Addr{netip.MustParseAddr(a.(string))}, nil
}

// peers maps a peer's host to what it answers; it is a transport without network.
type peers map[string]func() (int, any)

func (p peers) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, ok := p[req.URL.Host]
	if !ok {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	code, body := answer()
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

type member struct {
	ID        uint64   `json:"id"`
	PeerURLs  []string `json:"peerURLs"`
	Name      string   `json:"name"`
	IsLearner bool     `json:"isLearner,omitempty"`
}

func knows(hosts ...string) func() (int, any) {
	var ms []member
	for i, h := range hosts {
		m := member{ID: uint64(i), Name: h, PeerURLs: []string{"http://" + h}}
		if h == "c" {
			m.Name = "" // it is about to start
		}
		ms = append(ms, m)
	}
	return func() (int, any) { return http.StatusOK, ms }
}

func expect(t *testing.T, initialCluster string) Membership {
	t.Helper()
	m, err := ParseInitialCluster(initialCluster)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var errNoSuchHost = &net.DNSError{Err: "no such host", Name: "c", IsNotFound: true}

func TestWaitsUntilTheNameResolvesToThePod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d := &dns{answers: []any{errNoSuchHost, errNoSuchHost, "10.0.0.1", "10.0.0.2"}}
		err := Run(t.Context(), Config{Name: "c", IP: netip.MustParseAddr("10.0.0.2"), Timeout: time.Minute, Resolver: d, Out: &out})
		if err != nil {
			t.Fatal(err)
		}
		if d.lookups != 4 {
			t.Errorf("%d lookups, want 4: the address of a former pod is not the pod's", d.lookups)
		}
		if want := "check-dns: waited 950ms for c to resolve to 10.0.0.2\n"; out.String() != want {
			t.Errorf("said %q, want %q", out.String(), want)
		}
	})
}

func TestAnyAddressWillDoWhereThePodsIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := Run(t.Context(), Config{Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{}})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestGivesUpAtTheTimeoutAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		start := time.Now()
		err := Run(t.Context(), Config{Name: "c", Timeout: 12 * time.Second, Resolver: &dns{answers: []any{errNoSuchHost}}, Out: &out})
		if err == nil {
			t.Fatal("no error")
		}
		if took := time.Since(start); took != 12*time.Second {
			t.Errorf("gave up after %s", took)
		}
		for _, want := range []string{"gave up after 12s", "c to resolve", "no such host", "headless Service"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error lacks %q: %v", want, err)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %v", err)
		}
		if n := strings.Count(out.String(), "waiting for c to resolve"); n != 2 {
			t.Errorf("%d lines of progress in 12 s, want 2:\n%s", n, out.String())
		}
	})
}

func TestZeroTimeoutIsNoBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{}
		for range 100_000 {
			d.answers = append(d.answers, errNoSuchHost)
		}
		d.answers = append(d.answers, "10.0.0.1")
		if err := Run(t.Context(), Config{Name: "c", Resolver: d, Out: &bytes.Buffer{}}); err != nil {
			t.Error(err)
		}
	})
}

func TestEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, nil)
		stop := time.AfterFunc(time.Second, cancel)
		defer stop.Stop()
		err := Run(ctx, Config{Name: "c", Resolver: &dns{answers: []any{errNoSuchHost}}, Out: &bytes.Buffer{}})
		if err == nil || !strings.Contains(err.Error(), "was asked to stop after 1s") {
			t.Errorf("got %v", err)
		}
	})
}

func TestWaitsForExactlyTheMembershipOfInitialCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		peers peers
		want  string // in the error; "": joins
	}{
		"the same set": {
			peers: peers{"a": knows("a", "b", "c"), "b": knows("a", "b", "c")},
		},
		"in another order": {
			peers: peers{"a": knows("c", "b", "a")},
		},
		"one peer is down": {
			peers: peers{"b": knows("a", "b", "c")},
		},
		"not added yet": {
			peers: peers{"a": knows("a", "b"), "b": knows("a", "b")},
			want:  "http://a knows the members {http://a, http://b}",
		},
		"one too many": {
			peers: peers{"a": knows("a", "b", "c", "d")},
			want:  "{http://a, http://b, http://c, http://d}",
		},
		"as many, but another": {
			peers: peers{"a": knows("a", "b", "x")},
			want:  "{http://a, http://b, http://x}",
		},
		"the peer that etcd would believe lags behind": {
			peers: peers{"a": knows("a", "b"), "b": knows("a", "b", "c")},
			want:  "http://a knows the members {http://a, http://b}",
		},
		"all are down": {
			peers: peers{},
			want:  "no member answers: ",
		},
		"an error is no membership": {
			peers: peers{"a": func() (int, any) { return http.StatusServiceUnavailable, "starting" }, "b": knows("a", "b", "c")},
		},
		"nor is an empty list": {
			peers: peers{"a": knows()},
			want:  "does not know the membership yet",
		},
		"nor something else": {
			peers: peers{"a": func() (int, any) { return http.StatusOK, "hello" }},
			want:  "not a list of members",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := Run(ctx, Config{
					Name: "c", Timeout: 20 * time.Second, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
					InitialCluster: expect(t, "a=http://a,b=http://b,c=http://c"),
					Peers:          []string{"http://b", "http://a"},
					DataDir:        t.TempDir(),
					Transport:      tc.peers,
				})
				switch {
				case tc.want == "" && err != nil:
					t.Error(err)
				case tc.want != "" && err == nil:
					t.Error("joins")
				case tc.want != "" && !strings.Contains(err.Error(), tc.want):
					t.Errorf("the error lacks %q: %v", tc.want, err)
				case tc.want != "" && strings.Contains(err.Error(), "\n"):
					t.Errorf("the error has several lines: %v", err)
				}
			})
		})
	}
}

func TestJoinsWithinAMomentOfBeingAdded(t *testing.T) {
	for after, moment := range map[time.Duration]time.Duration{2 * time.Second: peersInterval, 10 * time.Second: turnInterval} {
		synctest.Test(t, func(t *testing.T) {
			added := time.Now().Add(after)
			err := Run(t.Context(), Config{
				Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
				InitialCluster: expect(t, "a=http://a,c=http://c"),
				Peers:          []string{"http://a"},
				Transport: peers{"a": func() (int, any) {
					if time.Now().Before(added) {
						return knows("a")()
					}
					return knows("a", "c")()
				}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if late := time.Since(added); late > moment {
				t.Errorf("added after %s, noticed after %s", after, late)
			}
		})
	}
}

// silent is a peer whose network swallows all packets.
type silent struct{ next http.RoundTripper }

func (s silent) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host == "a" {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return s.next.RoundTrip(req)
}

func TestASilentPeerDoesNotBlockTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := Run(t.Context(), Config{
			Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "a=http://a,b=http://b,c=http://c"),
			Peers:          []string{"http://a", "http://b"},
			Transport:      silent{peers{"b": knows("a", "b", "c")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != peerTimeout {
			t.Errorf("took %s, want the timeout of one request, %s", took, peerTimeout)
		}
	})
}

func TestAMemberThatComesBackNeedsItsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{}, DataDir: t.TempDir(), RequireData: true}
		if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "holds no data of etcd in "+cfg.DataDir) {
			t.Errorf("on an empty volume: %v", err)
		}
		putWAL(t, cfg.DataDir)
		if err := Run(t.Context(), cfg); err != nil {
			t.Errorf("with data: %v", err)
		}
	})
}

// putWAL writes what etcd writes first.
func putWAL(t *testing.T, dataDir string) {
	t.Helper()
	wal := filepath.Join(dataDir, "member", "wal")
	if err := os.MkdirAll(wal, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(wal, "0000000000000000-0000000000000000.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A node that keeps the data in memory has rebooted: the pod is the same.
func TestAMemberThatHasLostItsDataDoesNotStartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dns{answers: []any{"10.0.0.1"}}
		cfg := Config{Name: "c", Resolver: d, Out: &bytes.Buffer{}, DataDir: filepath.Join(t.TempDir(), "data"), Started: filepath.Join(t.TempDir(), "started")}
		if err := Run(t.Context(), cfg); err != nil {
			t.Fatalf("the first start: %v", err)
		}
		putWAL(t, cfg.DataDir)
		if err := Run(t.Context(), cfg); err != nil {
			t.Errorf("a restart with the data: %v", err)
		}
		if err := os.RemoveAll(cfg.DataDir); err != nil {
			t.Fatal(err)
		}
		before := d.lookups
		if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "started in this pod before, and "+cfg.DataDir+" holds no data") {
			t.Errorf("a restart without it: %v", err)
		}
		if d.lookups != before {
			t.Error("it waited for what can't help")
		}
	})
}

// etcd does not run before check-dns succeeds, so no data can be missing yet.
func TestAWaitThatFailedIsNoStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{
			Name: "c", Timeout: time.Second, Resolver: &dns{answers: []any{errNoSuchHost}}, Out: &bytes.Buffer{},
			DataDir: t.TempDir(), Started: filepath.Join(t.TempDir(), "started"),
		}
		if err := Run(t.Context(), cfg); err == nil {
			t.Fatal("no error")
		}
		cfg.Resolver = &dns{answers: []any{"10.0.0.1"}}
		if err := Run(t.Context(), cfg); err != nil {
			t.Errorf("tried again: %v", err)
		}
	})
}

func TestEtcdIsNotStartedWhereThatCanNotBeNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{
			Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
			DataDir: t.TempDir(), Started: filepath.Join(t.TempDir(), "missing", "started"),
		}
		if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "note that etcd is started") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAMemberWithDataDoesNotWaitForTheOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		joins bool
	}{
		"with a write-ahead log":                  {files: []string{"member/wal/0000000000000000-0000000000000000.wal"}, joins: true},
		"with a log that was only being prepared": {files: []string{"member/wal/0.tmp"}},
		"without anything":                        {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				for _, f := range tc.files {
					path := filepath.Join(dir, f)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, nil, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				err := Run(t.Context(), Config{
					Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
					InitialCluster: expect(t, "a=http://a,c=http://c"), Peers: []string{"http://a"},
					DataDir: dir, Transport: peers{},
				})
				if joined := err == nil; joined != tc.joins {
					t.Errorf("starts: %t, want %t (%v)", joined, tc.joins, err)
				}
			})
		})
	}
}

func TestAsksOverTheNetwork(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/members" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("X-Etcd-Cluster-ID", "cdf818194e3a8c32")
		fmt.Fprintf(w, `[{"id":10276657743932975437,"peerURLs":["%s"],"name":"a","clientURLs":["http://a:2379"]},{"id":1,"peerURLs":["http://c:2380"],"name":"","isLearner":true}]`, server.URL)
	}))
	defer server.Close()
	transport := PeerTransport(Certificate{})
	defer transport.CloseIdleConnections()
	err := Run(t.Context(), Config{
		Name: "localhost", Timeout: time.Minute, Resolver: PureResolver(), Out: &bytes.Buffer{},
		InitialCluster: expect(t, "a="+server.URL+",c=http://c:2380"), Peers: []string{server.URL},
		Transport: transport,
	})
	if err != nil {
		t.Error(err)
	}
}

// A member joins another etcd only if it reaches all of its members from here.
func TestWaitsForTheMembersToImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := peers{"old-0": knows("old-0", "old-1")}
		cfg := Config{
			Name: "c", SkipName: true, Timeout: time.Minute, Resolver: &dns{}, Out: &bytes.Buffer{}, Transport: others,
			Reach: []string{"http://old-0", "http://old-1"},
		}
		start := time.Now()
		err := Run(t.Context(), cfg)
		if !errors.Is(err, ErrNotExpected) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "network policies") || time.Since(start) != time.Minute {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		others["old-1"] = knows("old-0", "old-1")
		if err := Run(t.Context(), cfg); err != nil {
			t.Error(err)
		}
		// It has joined, and the former members are gone.
		cfg.Transport, cfg.DataDir = peers{}, t.TempDir()
		putWAL(t, cfg.DataDir)
		if err := Run(t.Context(), cfg); err != nil {
			t.Error(err)
		}
	})
}
