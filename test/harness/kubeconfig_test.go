// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// production writes a kubeconfig of a cluster that must receive no request.
func production(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the cluster was asked: %s %s", r.Method, r.URL)
		http.Error(w, "this is production", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: '" + server.URL + "'}}]}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTestsAskNoClusterButTheLocalOne(t *testing.T) {
	file := production(t)
	for what, tt := range map[string]struct{ kubeconfig, want string }{
		"another cluster": {file, "KUBECONFIG=" + file + " is not the kubeconfig of a local Kubernetes"},
		"two files":       {file + ":" + file, "is not the kubeconfig of a local Kubernetes"},
		"none":            {"", "KUBECONFIG is not set"},
		"of scripts":      {"/dev/null", "is not the kubeconfig of a local Kubernetes"},
	} {
		t.Setenv("KUBECONFIG", tt.kubeconfig)
		env, err := connect()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want an error with %q", what, env, err, tt.want)
		}
	}
}

func TestTheKubeconfigOfTheLocalKubernetesIsTaken(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "supervisor.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "kubeconfig")
	t.Setenv("KUBECONFIG", want)
	if got, err := Kubeconfig(); err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
