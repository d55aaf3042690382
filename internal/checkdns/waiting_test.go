// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkdns

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Where members join one after the other, or copy much data, the others wait for long. With
// TLS, each new connection costs both sides more processor time than hundreds of requests.
func TestAWaitKeepsItsConnections(t *testing.T) {
	var connections, requests atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hosts := map[string]string{}
	for _, host := range []string{"a", "b", "d"} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) == 6 {
				cancel()
			}
			fmt.Fprint(w, `[{"id":1,"peerURLs":["http://a:2380"]},{"id":2,"peerURLs":["http://b:2380"]},{"id":3,"peerURLs":["http://d:2380"]}]`)
			// The end of an answer in chunks comes after the list. So answers etcd about many members.
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.Start()
		defer server.Close()
		hosts[host+":2380"] = server.Listener.Addr().String()
	}
	transport := PeerTransport(Certificate{})
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, hosts[address])
	}
	defer transport.CloseIdleConnections()
	err := Run(ctx, Config{
		Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
		InitialCluster: expect(t, "a=http://a:2380,b=http://b:2380,c=http://c:2380,d=http://d:2380"),
		Peers:          []string{"http://a:2380", "http://b:2380", "http://d:2380"},
		Transport:      transport,
	})
	if err == nil {
		t.Fatal("joins")
	}
	// On a busy machine, a slow answer brings in the next peer.
	if c, r := connections.Load(), requests.Load(); c > 3 || r < 5 {
		t.Errorf("%d requests on %d connections, want one connection to each peer at most", r, c)
	}
}

func TestAWaitAsksOnePeerThatAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		transport := &calls{RoundTripper: peers{"a": knows("a", "b"), "b": knows("a", "b")}}
		err := Run(ctx, Config{
			Name: "c", Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
			InitialCluster: expect(t, "a=http://a,b=http://b,c=http://c"), Peers: []string{"http://a", "http://b"}, Transport: transport,
		})
		if err == nil {
			t.Fatal("joins")
		}
		fast, slow := int(patience/peersInterval), int((time.Minute-patience)/turnInterval)
		if transport.count < fast+slow-2 || transport.count > fast+slow+2 {
			t.Errorf("%d calls in a minute, want %d", transport.count, fast+slow)
		}
	})
}

// Another member may copy a large database first. A container that fails meanwhile, again and again, would
// wait for the kubelet when its turn comes.
func TestTheTurnOfAMemberHasNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, peer := time.Now(), ""
		answers := peers{"a": func() (int, any) {
			switch {
			case peer != "":
				return http.StatusServiceUnavailable, nil
			case time.Since(start) < time.Hour:
				return knows("a", "b")()
			default:
				return knows("a", "b", "c")()
			}
		}}
		join := func() error {
			return Run(t.Context(), Config{
				Name: "c", Timeout: time.Minute, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
				InitialCluster: expect(t, "a=http://a,b=http://b,c=http://c"), Peers: []string{"http://a", "http://b"}, Transport: answers,
			})
		}
		if err := join(); err != nil || time.Since(start) < time.Hour {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		start, peer = time.Now(), "silent"
		if err := join(); err == nil || !strings.Contains(err.Error(), "gave up after 1m") {
			t.Errorf("without an answer: %v after %s", err, time.Since(start))
		}
	})
}
