// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// The operator follows an edit of the spec at once. The fight does not end.
	c.obj.Generation++
	if n := fight(time.Second); n != 1 {
		t.Errorf("%d writes in the second after an edit", n)
	}
	if n := fight(fightPause - time.Second); n > 1 {
		t.Errorf("%d writes in the minute after an edit", n)
	}
}

// Without its labels, an object is not in the cache. An edit of the spec does not end the fight.
func TestAFightOverTheLabelsOfAnObjectCalmsDown(t *testing.T) {
	peer, client := manifest.BuildPeerService(testCluster()), manifest.BuildClientService(testCluster())
	budget := manifest.BuildBudget(testCluster(), 2)
	for name, tc := range map[string]struct {
		resource schema.GroupVersionResource
		hidden   metav1.Object
		rule     func(*plan.Observation) plan.Step
	}{
		"peer Service":        {corev1.SchemeGroupVersion.WithResource("services"), peer, plan.KeepPeerService},
		"client Service":      {corev1.SchemeGroupVersion.WithResource("services"), client, plan.KeepClientService},
		"PodDisruptionBudget": {policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), budget, plan.KeepBudget},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, testCluster())
			c := w.cluster(testCluster())
			tc.hidden.SetLabels(nil)
			hidden := tc.hidden.(runtime.Object)
			if err := w.kube.Tracker().Create(tc.resource, hidden, "ns"); err != nil {
				t.Fatal(err)
			}
			before := w.count("update", tc.resource.Resource)
			for second := range 10 * 60 {
				if second == 45 {
					c.obj.Generation++
				}
				o, err := c.observe(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if s := tc.rule(o); s != nil {
					if err := c.apply(t.Context(), s); err != nil {
						t.Fatal(err)
					}
					if err := w.kube.Tracker().Update(tc.resource, hidden, "ns"); err != nil {
						t.Fatal(err)
					}
				}
				clock.Step(time.Second)
			}
			if n := w.count("update", tc.resource.Resource) - before; n < fightAfter+8 || n > fightAfter+11 {
				t.Errorf("%d writes in ten minutes", n)
			}
		})
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
