// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The same etcd from another repository answers the same before its restart as after it.
func TestTheSameVersionOfAnotherRepositoryRestartsOneMemberAtATime(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Spec.Repository = "mirror.example.com/etcd"
	w := newWorld(t, clock, obj)
	fakeMembers{}.join(t, w, "a", "b", "c")
	for _, name := range []string{"a", "b", "c"} {
		w.editPod(name, func(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].ContainerID = "containerd://" + name })
	}
	c := w.cluster(obj)
	for operator := range 2 {
		for range 20 {
			if s, err := c.pass(t.Context()); err != nil && !isNotYet(err) {
				t.Fatalf("%s: %v", s, err)
			}
			clock.Step(Period)
			w.watch()
		}
		if moved := movedTo(w, "mirror.example.com"); moved != "b" {
			t.Fatalf("operator %d has changed the images of the pods %q, and the kubelet has restarted none", operator, moved)
		}
		c = w.cluster(obj) // remembers nothing
	}
	w.editPod("b", func(pod *corev1.Pod) {
		kubelet(pod, ended(0, ""), corev1.ContainerState{}, runs(), ended(0, ""), 1)
		pod.Status.ContainerStatuses[1].ContainerID = "containerd://b2"
	})
	for range 20 {
		_, _ = c.pass(t.Context())
		clock.Step(time.Second)
		w.watch()
	}
	if moved := movedTo(w, "mirror.example.com"); moved != "b c" {
		t.Errorf("after the restart of b, the images of %q are changed", moved)
	}
}

// movedTo names the pods whose image is one of a repository.
func movedTo(w *world, repository string) string {
	var moved []string
	for _, p := range w.storedPods() {
		if strings.HasPrefix(p.Spec.Containers[0].Image, repository) {
			moved = append(moved, p.Name)
		}
	}
	return strings.Join(moved, " ")
}
