// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/logs"
	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/test/ports"
)

// silentAPIServer writes a kubeconfig for an API server that refuses everything.
func silentAPIServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %s}}]
contexts: [{name: c, context: {cluster: c, namespace: ns}}]
current-context: c
`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func TestWithoutAnAPIServerTheOperatorIsNotReadyAndEndsCleanly(t *testing.T) {
	addr := net.JoinHostPort("127.0.0.1", ports.Free(t, "127.0.0.1", 1)[0])

	for _, image := range []string{"", "operator:test"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		opts := options{Flags: operator.Flags{ListenAddr: addr, Kubeconfig: silentAPIServer(t)}, operatorImage: image}
		go func() { done <- run(ctx, opts, logs.New(io.Discard).WithField("test", true)) }()

		body := awaitAnswer(t, "http://"+addr+"/readyz")
		if !strings.HasPrefix(body, "503") {
			t.Errorf("image %q: /readyz says %q", image, body)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("image %q: %v", image, err)
		}
	}
}

// awaitAnswer asks until a server answers.
func awaitAnswer(t *testing.T, url string) string {
	t.Helper()
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(resp.StatusCode, " ", string(text))
	}
}

func TestAPortInUseEndsTheOperator(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = run(t.Context(), options{Flags: operator.Flags{ListenAddr: l.Addr().String(), Kubeconfig: silentAPIServer(t)}}, logs.New(io.Discard).WithField("test", true))
	if err == nil || !strings.Contains(err.Error(), "-listen-addr") {
		t.Errorf("got %v", err)
	}
}
