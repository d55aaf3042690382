//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// v0.9.4's walkthrough, command by command. create_role.sh takes its names from the
// environment, so that it does not affect other tests.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	n.Shell("example/rbac/create_role.sh")
	n.Shell("kubectl create -f example/deployment.yaml")
	n.WaitOperator()
	wants(t, n.Shell("kubectl get pods"), "etcd-operator-", "1/1", "Running")
	wants(t, n.Shell("kubectl get crd"), "etcdclusters.etcd.database.coreos.com")
	wants(t, n.Shell("kubectl describe crd  etcdclusters.etcd.database.coreos.com"),
		"Group:", "etcd.database.coreos.com", "EtcdCluster", "EtcdClusterList", "etcdclusters", "etcd", "Namespaced", "v1beta2")
	n.Shell("kubectl apply -f example/example-etcd-cluster.yaml")
	cluster := n.Adopt("example-etcd-cluster")
	cluster.WaitSettled()
	harness.Wait(t, "three members and the operator, all ready", harness.Settle, func(context.Context) error {
		pods := n.Shell("kubectl get pods")
		if members, ready := strings.Count(pods, "example-etcd-cluster-"), strings.Count(pods, "1/1"); members != 3 || ready != 4 {
			return fmt.Errorf("kubectl get pods shows %d members and %d ready pods", members, ready)
		}
		return nil
	})
	wants(t, n.Shell("kubectl get etcd"), "example-etcd-cluster", "Running", "3")
	wants(t, n.Shell("kubectl get services"), "example-etcd-cluster-client", "2379/TCP")
	n.Shell("kubectl delete -f example/example-etcd-cluster.yaml")
	cluster.WaitGone(harness.Settle)
	n.Shell("kubectl delete -f example/deployment.yaml")
}

// create_role.sh takes the same as flags.
func TestCreateRoleFlags(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	// kubectl asks about resources that the API server knows.
	n.Shell("kubectl apply --server-side --force-conflicts -f pkg/apis/etcd/crd/etcd.database.coreos.com_etcdclusters.yaml")
	n.Shell("env -u NAMESPACE -u ROLE_NAME -u ROLE_BINDING_NAME example/rbac/create_role.sh --role-name=" + n.Name + " --role-binding-name=" + n.Name + " --namespace=" + n.Name)
	wants(t, n.Shell("kubectl auth can-i watch etcdclusters.etcd.database.coreos.com --as=system:serviceaccount:"+n.Name+":default"), "yes")
}

// If the operator's rights must end at its namespace, somebody else applies the CRD, and a
// Role is enough for the rest.
func TestNamespacedRole(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	n.Shell("kubectl apply --server-side --force-conflicts -f pkg/apis/etcd/crd/etcd.database.coreos.com_etcdclusters.yaml")
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
