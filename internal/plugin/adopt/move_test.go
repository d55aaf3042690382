// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
)

func forkWorld(t *testing.T) *world {
	t.Helper()
	return newWorld(t, slices.Concat(operator("default", "etcd-operator", "etcd-operator"), operator("default", "backups", "/usr/local/bin/etcd-backup-operator"))...)
}

func TestThePlanOfAHealthyForkHasNoProblemAndChangesNothing(t *testing.T) {
	w := forkWorld(t)
	p := w.plan(w.move())
	if p.Has(adopt.Problem) || p.Has(adopt.Obstacle) || w.writes > 0 {
		t.Errorf("%d writes, findings %+v", w.writes, p.Findings)
	}
}

func TestTheMoveAndTheWayBack(t *testing.T) {
	w := forkWorld(t)
	before := w.all()
	m := w.move()
	m.Image = "mirror/etcd-operator:v1"
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err, w.said)
	}
	checkMoved(t, w)
	m = w.move()
	back, err := m.PlanBack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.RunBack(t.Context(), back); err != nil {
		t.Fatal(err, w.said)
	}
	checkBack(t, w, before)
}

func checkMoved(t *testing.T, w *world) {
	t.Helper()
	if names := w.names("deployments"); !slices.Equal(names, []string{"backups", "etcd-backup-operator", "etcd-operator"}) {
		t.Errorf("the Deployments are %q", names)
	}
	for _, name := range []string{"etcd-backup-operator", "etcd-operator"} {
		d := w.get("deployments", name)
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		secrets, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "imagePullSecrets")
		if image := containers[0].(map[string]any)["image"]; image != "mirror/etcd-operator:v1" || len(secrets) != 1 || d.GetLabels()["fork"] != "" {
			t.Errorf("%s runs %v with the Secrets %v and labels %v", name, image, secrets, d.GetLabels())
		}
	}
	if replicas, _, _ := unstructured.NestedInt64(w.get("deployments", "backups").Object, "spec", "replicas"); replicas != 0 {
		t.Errorf("the old Deployment has %d replicas", replicas)
	}
	versions, _, _ := unstructured.NestedSlice(w.get("customresourcedefinitions", "etcdclusters.etcd.database.coreos.com").Object, "spec", "versions")
	if versions[0].(map[string]any)["subresources"] == nil {
		t.Error("the CRD is the old one")
	}
	if names := w.names("roles"); !slices.Equal(names, []string{"etcd-backup-operator", "etcd-operator"}) {
		t.Errorf("the Roles are %q", names)
	}
}

// checkBack compares all but the status of the clusters, and CRDs that were not there before.
func checkBack(t *testing.T, w *world, before map[string]any) {
	t.Helper()
	after := w.all()
	for name, want := range before {
		got := after[name]
		delete(after, name)
		if strings.HasPrefix(name, "etcdclusters/") || strings.HasPrefix(name, "pods/") {
			continue
		}
		for _, o := range []any{got, want} {
			if o, ok := o.(map[string]any); ok {
				delete(o, "status")
				for _, added := range []string{"creationTimestamp", "generation"} {
					unstructured.RemoveNestedField(o, "metadata", added)
				}
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v, and was %v", name, got, want)
		}
	}
	for name := range after {
		if !strings.HasPrefix(name, "customresourcedefinitions/") {
			t.Errorf("%s remains", name)
		}
	}
}

func TestAMoveThatBreaksAtAnyWriteContinues(t *testing.T) {
	for n := 1; ; n++ {
		w := forkWorld(t)
		before := w.all()
		m := w.move()
		m.Image = "mirror/etcd-operator:v1"
		w.failAt = n
		err := m.Run(t.Context(), w.plan(m))
		if err == nil {
			if n < 10 {
				t.Errorf("there are only %d writes", n)
			}
			return
		}
		m = w.move() // the settings are those of the record, if there is one
		m.Image = "mirror/etcd-operator:v1"
		if n > 1 {
			m.Image = ""
		}
		p := w.plan(m)
		if err := m.Run(t.Context(), p); err != nil || p.Continues != (n > 1) || p.Has(adopt.Problem) || p.Has(adopt.Obstacle) {
			t.Fatalf("after write %d: %v, findings %+v", n, err, p.Findings)
		}
		checkMoved(t, w)
		if back, err := m.PlanBack(t.Context()); err != nil || m.RunBack(t.Context(), back) != nil {
			t.Fatalf("after write %d: no way back: %v", n, err)
		}
		checkBack(t, w, before)
	}
}

func TestAWayBackThatBreaksAtAnyWriteContinues(t *testing.T) {
	for n := 1; ; n++ {
		w := forkWorld(t)
		before := w.all()
		m := w.move()
		if err := m.Run(t.Context(), w.plan(m)); err != nil {
			t.Fatal(err)
		}
		back, err := m.PlanBack(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.failAt = w.writes + n
		if m.RunBack(t.Context(), back) == nil {
			if n < 8 {
				t.Errorf("there are only %d writes", n)
			}
			return
		}
		if back, err = m.PlanBack(t.Context()); err != nil || m.RunBack(t.Context(), back) != nil {
			t.Fatalf("after write %d: %v", n, err)
		}
		checkBack(t, w, before)
	}
}

func TestNothingStartsWhileAnOldPodRuns(t *testing.T) {
	w := newWorld(t, append(operator("default", "etcd-operator", "etcd-operator"), `
apiVersion: v1
kind: Pod
metadata: {name: stuck, namespace: default, labels: {name: etcd-operator}}`)...)
	m := w.move()
	err := m.Run(t.Context(), w.plan(m))
	if err == nil || !strings.Contains(err.Error(), "waiting until the pod stuck ends") {
		t.Errorf("the error is %v", err)
	}
	if d := w.get("deployments", "etcd-operator"); d.GetLabels()["fork"] == "" {
		t.Error("the new operator is there")
	}
}

func TestTheForkClusterWide(t *testing.T) {
	w := newWorld(t, operator("default", "etcd-operator", "etcd-operator, -cluster-wide")...)
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	if names := w.names("clusterroles"); !slices.Equal(names, []string{"etcd-operator-cluster-wide"}) || len(w.names("roles")) > 0 {
		t.Errorf("the ClusterRoles are %q", names)
	}
	subjects, _, _ := unstructured.NestedSlice(w.get("clusterrolebindings", "etcd-operator-cluster-wide").Object, "subjects")
	if subject := subjects[0].(map[string]any); subject["namespace"] != "default" {
		t.Errorf("the rights are of %v", subject)
	}
}

func TestAnyScopeIsOfTheBackupOperatorAlone(t *testing.T) {
	w := forkWorld(t)
	m := w.move()
	m.AnyScope = true
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"etcd-operator": false, "etcd-backup-operator": true} {
		containers, _, _ := unstructured.NestedSlice(w.get("deployments", name).Object, "spec", "template", "spec", "containers")
		command, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "command")
		if slices.Contains(command, "-any-scope") != want || slices.Contains(command, "-cluster-wide") != want {
			t.Errorf("%s runs %q", name, command)
		}
	}
}
