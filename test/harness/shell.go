// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Shell runs a command line as a user would at the top of the source tree, and returns its
// output. kubectl uses the test's namespace by default, and create_role.sh takes the test's
// names from its environment.
func (n *Namespace) Shell(line string) string {
	n.t.Helper()
	return n.ShellWithin(Settle, line)
}

// ShellWithin is Shell for slow commands.
func (n *Namespace) ShellWithin(timeout time.Duration, line string) string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), timeout)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Dir = n.Root
	command.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig(),
		"NAMESPACE="+n.Name, "ROLE_NAME="+n.Name, "ROLE_BINDING_NAME="+n.Name)
	output, err := command.CombinedOutput()
	if err != nil {
		n.t.Fatalf("$ %s\n%s%v", line, output, err)
	}
	n.t.Logf(note+"$ %s\n%s", line, output)
	return string(output)
}

// ForgetRoles deletes what create_role.sh creates outside of the namespace when the test ends.
func (n *Namespace) ForgetRoles() {
	name := metav1.ObjectMeta{Name: n.Name}
	n.granted = append(n.granted, &rbacv1.ClusterRole{ObjectMeta: name}, &rbacv1.ClusterRoleBinding{ObjectMeta: name})
}

// kubeconfig writes a copy of the kubeconfig whose default is the test's namespace.
func (n *Namespace) kubeconfig() string {
	n.t.Helper()
	path := filepath.Join(n.t.TempDir(), "kubeconfig")
	own, err := Kubeconfig()
	if err != nil {
		n.t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(own)
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
