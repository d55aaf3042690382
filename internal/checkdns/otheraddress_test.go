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
	"sync/atomic"
	"testing"
	"time"
)

// The address of a restarted pod may go to a member of another cluster, while a DNS cache
// still names it for the old one. A client that has asked there once must not keep that
// connection.
func TestAMemberOfAnotherClusterIsNotAskedForEver(t *testing.T) {
	const peer = "http://a.example:2380"
	member := func(urls ...string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "[")
			for i, u := range urls {
				if i > 0 {
					fmt.Fprint(w, ",")
				}
				fmt.Fprintf(w, `{"id":%d,"peerURLs":["%s"]}`, i+1, u)
			}
			fmt.Fprint(w, "]")
		}))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	stranger, right := member("http://other.example:2380"), member(peer, "http://c.example:2380")
	var dialed atomic.Int32
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := right
		if dialed.Add(1) == 1 {
			address = stranger
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	err := Run(t.Context(), Config{
		Name: "c", Timeout: 20 * time.Second, Resolver: &dns{answers: []any{"10.0.0.1"}}, Out: &bytes.Buffer{},
		InitialCluster: expect(t, "a="+peer+",c=http://c.example:2380"), Peers: []string{peer}, Transport: transport,
	})
	if err != nil {
		t.Error(err)
	}
}
