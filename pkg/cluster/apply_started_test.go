// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestNoteMemberPatchesThatPod(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	pod := w.makePod(memberPod(t, c.obj, "a"))
	if err := c.apply(t.Context(), plan.NoteMember{Pod: "a", UID: "earlier", ID: 0xab}); !apierrors.IsConflict(err) {
		t.Errorf("a note for an earlier pod of the name: %v", err)
	}
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil || !o.Pod("a").Guarded || o.Pod("a").Noted || !o.Pod("a").NotePutOff {
		t.Fatalf("after the failure the pod is %+v, %v", o.Pod("a"), err)
	}
	clock.Step(refusedPause)
	if err := c.apply(t.Context(), plan.NoteMember{Pod: "a", UID: pod.UID, ID: 0xab}); err != nil {
		t.Fatal(err)
	}
	// The cache does not show it yet.
	for where, pod := range map[string]corev1.Pod{"stored": w.storedPods()[0], "remembered": *c.podWrites["a"].pod} {
		if got := pod.Annotations[manifest.StartedAnnotation]; got != "ab" {
			t.Errorf("the note that is %s is %q", where, got)
		}
	}
}
