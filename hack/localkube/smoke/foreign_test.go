// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build smoke

package smoke

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// foreign returns an environment that leads to another cluster in all ways that kubectl
// supports. The test fails if that cluster gets a request.
func foreign(t *testing.T) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("another cluster was asked: %s %s (%s)", r.Method, r.URL, r.UserAgent())
		http.Error(w, "this is another cluster", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	kubeconfig, kuberc := filepath.Join(home, ".kube", "config"), filepath.Join(home, ".kube", "kuberc")
	if err := os.Mkdir(filepath.Dir(kubeconfig), 0o700); err != nil {
		t.Fatal(err)
	}
	preferences := "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ndefaults:\n"
	for _, command := range []string{"apply", "get", "logs", "exec", "wait"} {
		preferences += fmt.Sprintf("- command: %s\n  options: [{name: server, default: %q}]\n", command, server.URL)
	}
	for file, content := range map[string]string{
		kubeconfig: fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, server.URL),
		kuberc:     preferences,
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := exec.CommandContext(t.Context(), "go", "env", "GOPATH", "GOENV").Output()
	if err != nil {
		t.Fatal(err)
	}
	gopath, goenv, _ := strings.Cut(strings.TrimSpace(string(paths)), "\n")
	return []string{
		"XDG_CACHE_HOME=" + cache, "GOPATH=" + gopath, "GOENV=" + goenv, // as before, for hack/kube
		"HOME=" + home, "KUBECONFIG=" + kubeconfig, "KUBERC=" + kuberc, "KUBERNETES_MASTER=" + server.URL,
		"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1",
		// Daemons that got these would not start.
		"ETCD_NAME=another", "CONTAINERD_SNAPSHOTTER=another",
		// A proxy knows addresses that are the same in another network.
		"HTTP_PROXY=" + server.URL, "HTTPS_PROXY=" + server.URL,
	}
}
