//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

func TestServiceDeletedByHandReturns(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	for _, name := range []string{cluster.Name + "-client", cluster.Name} {
		deleteService(t, n, name)
	}
	cluster.WaitSettled()
	checkServices(t, n, cluster)
	cluster.Put("again", "yes")
	cluster.VerifyWrites(writer)
}

// deleteService deletes a Service and waits until another is there in its place.
func deleteService(t *testing.T, n *harness.Namespace, name string) {
	t.Helper()
	old := n.Service(name).UID
	if err := n.Kube.CoreV1().Services(n.Name).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, "service "+name+" back", harness.Settle, func(context.Context) error {
		service := n.Service(name)
		if service == nil || service.UID == old {
			return fmt.Errorf("service is %v", service)
		}
		return nil
	})
}
