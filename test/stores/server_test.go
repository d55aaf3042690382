//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"net/http"
	"testing"
	"time"
)

func TestServersDieAndComeBackAtTheSameAddress(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *Server{
		"MinIO": func(t *testing.T) *Server {
			m := MinIO(t, Options{})
			m.CreateBucket(t, "bucket")
			return &m.Server
		},
		"fake-gcs-server": func(t *testing.T) *Server {
			g := FakeGCS(t, Options{})
			g.CreateBucket(t, "bucket")
			return &g.Server
		},
		"Azurite": func(t *testing.T) *Server {
			a := Azurite(t, Options{})
			a.CreateContainer(t, "container")
			return &a.Server
		},
		"OSS": func(t *testing.T) *Server { return &OSS(t, Options{}, "bucket").Server },
	} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			answers := func(want bool, when string) {
				t.Helper()
				patience := time.Second // enough to see that it is silent
				if want {
					patience = startTime
				}
				client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
				if err := server.ready(t.Context(), client); (err == nil) != want {
					t.Errorf("%s: %v", when, err)
				}
			}
			endpoint := server.Endpoint
			answers(true, "started")
			server.Freeze(t)
			answers(false, "frozen")
			server.AwaitRequest(t) // the one that was given up
			server.Thaw(t)
			answers(true, "thawed")
			server.Kill(t)
			answers(false, "killed")
			server.Restart(t)
			answers(true, "restarted")
			if server.Endpoint != endpoint {
				t.Errorf("moved from %s to %s", endpoint, server.Endpoint)
			}
		})
	}
}
