//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// An operator for all namespaces runs the restores with the annotation, in two namespaces at
// once, and leaves the others alone.
func TestRestoresClusterWide(t *testing.T) {
	t.Parallel()
	wide := harness.NewNamespace(t)
	a, b := newRestores(t), newRestores(t)
	wide.DeployRestoreOperator(func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Command = append(d.Spec.Template.Spec.Containers[0].Command, "-cluster-wide")
	})
	var running []*harness.Restore
	for _, r := range []*restores{a, b} {
		cluster := r.Create(1, etcd36)
		r.backedUp(cluster, "etcd.backup")
		// The namespace's own operator stops, so that the test sees what the other one takes.
		r.ShellWithin(2*time.Minute, "kubectl delete deployment etcd-restore-operator && kubectl wait --for=delete pod -l name=etcd-restore-operator --timeout=100s")
	}
	for _, r := range []*restores{a, b} {
		restore := r.CreateRestoreObject(&v1beta2.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{Name: "etcd", Annotations: map[string]string{scopeAnnotation: "clusterwide"}}, Spec: r.spec("etcd", "etcd.backup"),
		})
		running = append(running, restore)
	}
	spec := a.spec("theirs", "etcd.backup")
	spec.ClusterTemplate = template(t, v1beta2.ClusterSpec{Size: 1})
	theirs := a.CreateRestore(spec)
	for i, r := range []*restores{a, b} {
		r.checkRestored("etcd", running[i].WaitSucceeded())
	}
	if s := theirs.Get().Status; s.Phase != v1beta2.RestorePhaseNone {
		t.Errorf("the operator for all namespaces took what was not annotated: %+v", s)
	}
	a.DeployRestoreOperator(nil)
	a.checkRestored("theirs", theirs.WaitSucceeded())
	if fmt.Sprint(a.minio.Endpoint) == fmt.Sprint(b.minio.Endpoint) {
		t.Error("both backups came from one store")
	}
}
