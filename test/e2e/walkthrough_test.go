//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// create_role.sh takes the same as flags.
func TestCreateRoleFlags(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	// kubectl asks about resources that the API server knows.
	n.Shell("kubectl apply --server-side --force-conflicts -k deploy/crds")
	n.Shell("env -u NAMESPACE -u ROLE_NAME -u ROLE_BINDING_NAME example/rbac/create_role.sh --role-name=" + n.Name + " --role-binding-name=" + n.Name + " --namespace=" + n.Name)
	wants(t, n.Shell("kubectl auth can-i watch etcdclusters.etcd.database.coreos.com --as=system:serviceaccount:"+n.Name+":default"), "yes")
}

// If the operator's rights must end at its namespace, somebody else applies the CRD, and a
// Role is enough for the rest.
func TestNamespacedRole(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	n.Shell("kubectl apply --server-side --force-conflicts -k deploy/crds")
	n.Shell("example/rbac/create_role.sh --namespaced")
	n.DeployOperatorUngranted("-create-crd=false")
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
	cluster.Resize(1)
	cluster.WaitSettled()
}

func wants(t *testing.T, output string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(output, word) {
			t.Errorf("the output lacks %q:\n%s", word, output)
		}
	}
}
