// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// asked collects what a server was asked.
type asked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (a *asked) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(p)
}

func (a *asked) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}

// start serves until the test ends, and returns the address.
func start(t *testing.T) (string, *asked) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	found, ended := &asked{}, make(chan error, 1)
	go func() { ended <- serve(ctx, listener, found) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), found
}

func TestRequestsAreRefusedAndNoted(t *testing.T) {
	var http1, http2 http.Protocols
	http1.SetHTTP1(true)
	http2.SetUnencryptedHTTP2(true)
	for name, protocols := range map[string]*http.Protocols{"HTTP/1": &http1, "HTTP/2, as of etcd's clients": &http2} {
		t.Run(name, func(t *testing.T) {
			address, found := start(t)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+address+"/api/v1/pods?all=true", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("User-Agent", "test")
			transport := &http.Transport{Protocols: protocols}
			defer transport.CloseIdleConnections()
			response, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusForbidden {
				t.Errorf("answered %s", response.Status)
			}
			// The process is this one, whose parent is that of the server as well.
			want := "DELETE /api/v1/pods?all=true (test) by " + strings.Join(os.Args, " ")
			if got := found.String(); !strings.Contains(got, want[:min(len(want), commandLength)]) {
				t.Errorf("noted %q, want %q", got, want)
			}
		})
	}
}

func TestConnectionsWithoutARequestAreNoted(t *testing.T) {
	for name, use := range map[string]func(net.Conn) error{
		"silent": func(net.Conn) error { return nil },
		"TLS": func(c net.Conn) error {
			// the server has no certificate
			if tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()) == nil {
				t.Error("the handshake succeeded")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			address, found := start(t)
			connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if err := use(connection); err != nil {
				t.Fatal(err)
			}
			want := "connection by " + filepath.Clean(os.Args[0])
			for begin := time.Now(); !strings.Contains(found.String(), want); {
				if time.Since(begin) > time.Minute {
					t.Fatalf("noted %q, want %q", found, want)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}
