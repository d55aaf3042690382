// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
)

// twoNamespaces is a world where default moved first, and then other.
func twoNamespaces(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, append(operator("default", "etcd-operator", "etcd-operator"), operator("other", "etcd-operator", "etcd-operator")...)...)
	for _, namespace := range []string{"default", "other"} {
		m := w.moveIn(namespace)
		if err := m.Run(t.Context(), w.plan(m)); err != nil {
			t.Fatal(err, w.said)
		}
	}
	return w
}

func (w *world) moveIn(namespace string) *adopt.Move {
	m := w.move()
	again := adopt.New(w.client, namespace)
	again.Say, again.Until = m.Say, m.Until
	return again
}

func (w *world) back(namespace string) *adopt.Back {
	w.t.Helper()
	m := w.moveIn(namespace)
	back, err := m.PlanBack(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := m.RunBack(w.t.Context(), back); err != nil {
		w.t.Fatal(err, w.said)
	}
	return back
}

// A Deployment that was stopped before the move is stopped after the way back.
func TestTheWayBackToAStoppedOperatorIsAProblem(t *testing.T) {
	w := newWorld(t, append(operator("default", "backups", "etcd-backup-operator"), without(operator("default", "etcd-operator", "etcd-operator")[0]))...)
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	back := w.back("default")
	if len(back.Findings) != 1 || !back.Has(adopt.Problem) || !strings.Contains(back.Findings[0].Message, "etcd-operator had 0 replicas before the move") {
		t.Errorf("findings %+v", back.Findings)
	}
	if got := back.Stopped(); !slices.Equal(got, []string{"etcd-operator"}) {
		t.Errorf("stopped are %q", got)
	}
}

// The old operators would leave an import and a restore as they are. Those of other operators do not count.
func TestTheWayBackInTheMiddleOfAnImportIsAProblem(t *testing.T) {
	w := newWorld(t, append(operator("default", "etcd-operator", "etcd-operator"), `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: taker, namespace: default, finalizers: [etcd.database.coreos.com/import]}`, `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: begun, namespace: default, finalizers: [etcd.database.coreos.com/restore]}`, `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: ended, namespace: default}`, `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: begun, namespace: other, finalizers: [etcd.database.coreos.com/restore]}`)...)
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err, w.said)
	}
	back, err := w.moveIn("default").PlanBack(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Findings) != 2 || !strings.Contains(back.Findings[0].Message, "default/taker is in the middle of an import") || !strings.Contains(back.Findings[1].Message, "default/begun has begun") {
		t.Errorf("findings %+v", back.Findings)
	}
	for _, f := range back.Findings {
		if f.Level != adopt.Problem || f.Fix == "" {
			t.Errorf("the finding %+v stops nobody", f)
		}
	}
}

// The record of the namespace that moved second has the CRDs of this release. Whichever goes back
// first, both then have the old ones.
func TestTwoNamespacesGoBackToTheOldCRDs(t *testing.T) {
	for _, c := range []struct{ first, second, finding string }{
		{"default", "other", "other/etcd-operator of this release shares the CRDs"},
		{"other", "default", "the CRDs of this release were there before the move"},
	} {
		w := twoNamespaces(t)
		first := w.back(c.first)
		if len(first.Findings) != 1 || !first.Has(adopt.Problem) || !strings.Contains(first.Findings[0].Message, c.finding) {
			t.Errorf("%s goes back first: findings %+v, want a problem: %s", c.first, first.Findings, c.finding)
		}
		if second := w.back(c.second); len(second.Findings) > 0 {
			t.Errorf("%s goes back second: findings %+v", c.second, second.Findings)
		}
		crd := w.get("customresourcedefinitions", "etcdclusters.etcd.database.coreos.com")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		if versions[0].(map[string]any)["subresources"] != nil {
			t.Errorf("%s goes back first: at the end, the CRD is that of this release", c.first)
		}
	}
}
