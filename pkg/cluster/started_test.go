// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestNoteMemberPatchesThatPod(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	pod := w.makePod(memberPod(t, c.obj, "a"))
	if err := c.apply(t.Context(), noteMember{pod: "a", uid: "earlier", id: 0xab}); !apierrors.IsConflict(err) {
		t.Errorf("a note for an earlier pod of the name: %v", err)
	}
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil || !o.pod("a").guarded || o.pod("a").noted || !o.pod("a").notePutOff {
		t.Fatalf("after the failure the pod is %+v, %v", o.pod("a"), err)
	}
	clock.Step(refusedPause)
	if err := c.apply(t.Context(), noteMember{pod: "a", uid: pod.UID, id: 0xab}); err != nil {
		t.Fatal(err)
	}
	// The cache does not show it yet.
	for where, pod := range map[string]corev1.Pod{"stored": w.storedPods()[0], "remembered": *c.podWrites["a"].pod} {
		if got := pod.Annotations[startedAnnotation]; got != "ab" {
			t.Errorf("the note that is %s is %q", where, got)
		}
	}
}
