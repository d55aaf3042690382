// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig returns the file that KUBECONFIG names, and an error unless it is a local
// Kubernetes'. Tests create, change and delete any object there, even outside of their
// namespaces.
func Kubeconfig() (string, error) {
	const use = `start the local Kubernetes with "hack/kube up" and set the environment with eval "$(hack/kube env)", or use hack/e2e, which does both`
	path := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if path == "" {
		return "", errors.New("KUBECONFIG is not set: these tests run on the local Kubernetes: " + use)
	}
	// The file is in the instance's directory, beside its supervisor's socket.
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), "supervisor.sock")); err != nil {
		return "", fmt.Errorf("KUBECONFIG=%s is not the kubeconfig of a local Kubernetes, and these tests touch no other cluster: %s", path, use)
	}
	return path, nil
}
