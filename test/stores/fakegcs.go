// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/environment"
)

// FakeGCSServer is a fake-gcs-server, which implements the JSON API of Google Cloud Storage.
// It accepts any credentials, and none.
type FakeGCSServer struct {
	Server
	// API is the URL of the JSON API, as Google's clients expect it for an endpoint.
	API string
}

// FakeGCS starts a fake-gcs-server without buckets.
func FakeGCS(t testing.TB, options Options) *FakeGCSServer {
	t.Helper()
	g := &FakeGCSServer{}
	g.health = "/_internal/healthcheck"
	path := program(t, "fake-gcs-server")
	start(t, &g.Server, options, func(ctx context.Context) *exec.Cmd {
		// It appends the port to the host, so an address of IPv6 needs brackets.
		host := strings.TrimSuffix(net.JoinHostPort(g.ip, ""), ":")
		cmd := exec.CommandContext(ctx, path, "-scheme", "http", "-host", host, "-port", g.port,
			"-external-url", g.Endpoint, "-public-host", net.JoinHostPort(g.ip, g.port),
			"-backend", "filesystem", "-filesystem-root", filepath.Join(g.Data, "objects"), "-log-level", "warn")
		cmd.Env = environment.Bare()
		return cmd
	})
	g.API = g.Endpoint + "/storage/v1/"
	return g
}

// CreateBucket makes a bucket.
func (g *FakeGCSServer) CreateBucket(t testing.TB, name string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.API+"b?project=test", strings.NewReader(`{"name":"`+name+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("create the bucket %s: %v", name, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("create the bucket %s: %s", name, response.Status)
	}
}
