// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bait is an environment and a home directory that lead all clients of a cluster, an etcd or a
// cloud to the server.
type bait struct {
	environ map[string]string
	files   map[string]string // by path
}

// preferred are the commands with an option in kubectl's preferences.
var preferred = []string{"annotate", "apply", "create", "delete", "describe", "exec", "get", "label", "logs", "patch", "run", "scale", "version", "wait"}

func baitFor(home, address string) bait {
	url := "http://" + address
	host, port, _ := net.SplitHostPort(address)
	var kuberc strings.Builder
	kuberc.WriteString("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ndefaults:\n")
	for _, command := range preferred {
		fmt.Fprintf(&kuberc, "- command: %s\n  options: [{name: server, default: %q}]\n", command, url)
	}
	in := func(path string) string { return filepath.Join(home, path) }
	return bait{
		environ: map[string]string{
			"HOME":       home,
			"KUBECONFIG": in(".kube/config"), "KUBERC": in(".kube/kuberc"),
			"KUBERNETES_MASTER": url, "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port,
			"HELM_KUBEAPISERVER": url,
			"ETCDCTL_ENDPOINTS":  url, "MINIO_ETCD_ENDPOINTS": url,
			"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_CONTAINER_CREDENTIALS_FULL_URI": url + "/credentials",
			"AZURE_AUTHORITY_HOST": "https://" + address, "IDENTITY_ENDPOINT": url, "IDENTITY_HEADER": "tripwire",
			"GCE_METADATA_HOST": address, "STORAGE_EMULATOR_HOST": address,
		},
		files: map[string]string{
			in(".kube/config"): fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: tripwire
contexts:
- name: tripwire
  context: {cluster: tripwire, user: tripwire}
clusters:
- name: tripwire
  cluster: {server: %q}
users:
- name: tripwire
  user: {}
`, url),
			in(".kube/kuberc"):     kuberc.String(),
			in(".aws/config"):      fmt.Sprintf("[default]\nregion = us-east-1\nendpoint_url = %s\n", url),
			in(".aws/credentials"): "[default]\naws_access_key_id = tripwire\naws_secret_access_key = tripwire\n",
			// Go would keep its counters here.
			in(".config/go/telemetry/mode"): "off\n",
		},
	}
}

// write writes the files.
func (b bait) write() error {
	for path, text := range b.files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// shell returns the commands that set the environment.
func (b bait) shell() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.environ)) {
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(b.environ[name], "'", `'\''`))
	}
	return text.String()
}
