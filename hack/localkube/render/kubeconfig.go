// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"fmt"

	"github.com/etcd-operator/etcd-operator/hack/localkube/pki"
)

// Kubeconfig is a self-contained kubeconfig, which can be copied.
func Kubeconfig(name, server string, ca []byte, client pki.Pair) string {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[1]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[1]s
`, name, server, b64(ca), b64(client.Cert), b64(client.Key))
}
