// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// A controller or a webhook that takes a label of the spec away each time led to a write
// every five seconds, forever.
func TestAFightOverMetadataCalmsDown(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	obj := testCluster()
	obj.Spec.Pod = &api.PodPolicy{Labels: map[string]string{"team": "a"}}
	c := w.cluster(obj)
	bare := testCluster()
	pod := w.makePod(memberPod(t, bare, "a"))
	fight := func(d time.Duration) (writes int) {
		before := w.count("patch", "pods")
		for range int(d / time.Second) {
			o, err := c.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Pod("a").MetadataOutdated {
				if err := c.apply(t.Context(), plan.SetMetadata{Pod: "a", UID: pod.UID}); err != nil {
					t.Fatal(err)
				}
				w.takeLabelAway(t, "a", "team")
			}
			clock.Step(time.Second)
		}
		return w.count("patch", "pods") - before
	}
	w.watch()
	if n := fight(time.Minute); n < fightAfter || n > fightAfter+2 {
		t.Errorf("%d writes in the first minute", n)
	}
	if n := fight(5 * time.Minute); n < 4 || n > 6 {
		t.Errorf("%d writes in the next five minutes", n)
	}
	// The operator follows an edit of the spec at once.
	clock.Step(fightPause)
	c.obj.Generation++
	if got := c.pauseAfterCorrection(metadataOf("a")); got != correctionPause {
		t.Errorf("after an edit the pause is %s", got)
	}
}

// Without its labels, the client Service is not in the cache.
func TestAFightOverTheLabelsOfAServiceCalmsDown(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	hidden := manifest.BuildClientService(c.obj)
	hidden.Labels = nil
	w.makeService(hidden)
	before := w.count("update", "services")
	for range 10 * 60 {
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s := plan.KeepClientService(o); s != nil {
			if err := c.apply(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("services"), hidden, "ns"); err != nil {
				t.Fatal(err)
			}
		}
		clock.Step(time.Second)
	}
	if n := w.count("update", "services") - before; n < fightAfter+8 || n > fightAfter+11 {
		t.Errorf("%d writes in ten minutes", n)
	}
}

// takeLabelAway does so to a pod, in the API server and in the caches.
func (w *world) takeLabelAway(t *testing.T, pod, label string) {
	t.Helper()
	obj, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", pod)
	if err != nil {
		t.Fatal(err)
	}
	changed := obj.(*corev1.Pod).DeepCopy()
	delete(changed.Labels, label)
	changed.ResourceVersion = w.nextVersion()
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), changed, "ns"); err != nil {
		t.Fatal(err)
	}
	w.watch()
}
