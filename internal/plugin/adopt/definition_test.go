// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
)

const (
	clusterCRD   = "etcdclusters.etcd.database.coreos.com"
	crdStamp     = "etcd.database.coreos.com/operator-version"
	helmPolicy   = "helm.sh/resource-policy"
	managedLabel = "app.kubernetes.io/managed-by"
)

// edit changes the CRD of EtcdClusters.
func (w *world) edit(change func(crd *unstructured.Unstructured)) {
	w.t.Helper()
	crd := w.get("customresourcedefinitions", clusterCRD)
	change(crd)
	if err := w.client.Tracker().Update(gvr("customresourcedefinitions"), crd, ""); err != nil {
		w.t.Fatal(err)
	}
}

// ofHelm makes the CRD one that Helm installed, and that a certificate manager converts.
func ofHelm(crd *unstructured.Unstructured) {
	crd.SetAnnotations(map[string]string{helmPolicy: "keep", "meta.helm.sh/release-name": "etcd"})
	crd.SetLabels(map[string]string{managedLabel: "Helm"})
	set(crd, "Webhook", "spec", "conversion", "strategy")
}

func checkOfHelm(t *testing.T, when string, crd *unstructured.Unstructured) {
	t.Helper()
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	if crd.GetAnnotations()[helmPolicy] != "keep" || crd.GetLabels()[managedLabel] != "Helm" || strategy != "Webhook" {
		t.Errorf("%s, the CRD has the annotations %v, the labels %v and the conversion %q", when, crd.GetAnnotations(), crd.GetLabels(), strategy)
	}
}

// All namespaces share the CRDs. Helm deletes them without the annotation, and all clusters with them.
func TestAMoveKeepsWhatOthersAddedToTheCRDs(t *testing.T) {
	w := forkWorld(t)
	w.edit(ofHelm)
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	crd := w.get("customresourcedefinitions", clusterCRD)
	checkOfHelm(t, "after the move", crd)
	if crd.GetAnnotations()[crdStamp] == "" {
		t.Error("the CRD has no stamp of this release")
	}
	w.back("default")
	crd = w.get("customresourcedefinitions", clusterCRD)
	checkOfHelm(t, "after the way back", crd)
	if stamp := crd.GetAnnotations()[crdStamp]; stamp != "" {
		t.Errorf("the old CRD has the stamp %s", stamp)
	}
}

// Helm may take the CRDs over after the move.
func TestTheWayBackKeepsWhatOthersAddedToTheCRDs(t *testing.T) {
	w := forkWorld(t)
	m := w.move()
	if err := m.Run(t.Context(), w.plan(m)); err != nil {
		t.Fatal(err)
	}
	w.edit(ofHelm)
	w.back("default")
	checkOfHelm(t, "after the way back", w.get("customresourcedefinitions", clusterCRD))
}

func TestCRDsOfALaterReleaseAreAnObstacle(t *testing.T) {
	for stamp, want := range map[string]bool{"v9.0.0": true, "v0.9.9": false, "unknown": false} {
		w := forkWorld(t)
		w.edit(func(crd *unstructured.Unstructured) { crd.SetAnnotations(map[string]string{crdStamp: stamp}) })
		p := w.plan(w.move())
		if p.Has(adopt.Obstacle) != want || want && !strings.Contains(p.Findings[0].Message, stamp) {
			t.Errorf("%s: findings %+v", stamp, p.Findings)
		}
	}
}
