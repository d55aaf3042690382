// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Shell runs a command line as a user would type it at the top of the source
// tree, and returns what it prints. For kubectl the test's namespace is the
// default one, and create_role.sh takes names of the test's own from its
// environment.
func (n *Namespace) Shell(line string) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Dir = n.Root
	command.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig(),
		"NAMESPACE="+n.Name, "ROLE_NAME="+n.Name, "ROLE_BINDING_NAME="+n.Name)
	output, err := command.CombinedOutput()
	n.t.Logf("$ %s\n%s", line, output)
	if err != nil {
		n.t.Fatalf("%s: %v", line, err)
	}
	return string(output)
}

// ForgetRoles removes, when the test ends, what create_role.sh made outside of
// the namespace.
func (n *Namespace) ForgetRoles() {
	n.t.Cleanup(func() {
		ctx, cancel := later(n.t.Context(), 30*time.Second)
		defer cancel()
		for _, err := range []error{
			n.Kube.RbacV1().ClusterRoles().Delete(ctx, n.Name, metav1.DeleteOptions{}),
			n.Kube.RbacV1().ClusterRoleBindings().Delete(ctx, n.Name, metav1.DeleteOptions{}),
		} {
			if err != nil && !apierrors.IsNotFound(err) {
				n.t.Errorf("remove what create_role.sh made: %v", err)
			}
		}
	})
}

// kubeconfig writes a copy of the kubeconfig with the test's namespace as the
// default one.
func (n *Namespace) kubeconfig() string {
	n.t.Helper()
	path := filepath.Join(n.t.TempDir(), "kubeconfig")
	config, err := clientcmd.LoadFromFile(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err == nil {
		if current := config.Contexts[config.CurrentContext]; current != nil {
			current.Namespace = n.Name
		}
		err = clientcmd.WriteToFile(*config, path)
	}
	if err != nil {
		n.t.Fatalf("copy the kubeconfig: %v", err)
	}
	return path
}
