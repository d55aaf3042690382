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
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
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

// A pod whose image was never there starts for the first time with the new one. The operator waited
// for a second start.
func TestTheFirstStartAfterAChangeOfTheImageIsSeen(t *testing.T) {
	obj := testCluster()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	made := w.makePod(memberPod(t, obj, "a"))
	w.editPod("a", func(pod *corev1.Pod) {
		kubelet(pod, ended(0, ""), corev1.ContainerState{}, waiting("ImagePullBackOff", "gone"), corev1.ContainerState{}, 0)
	})
	before := made.Spec.Containers[0].Image
	c.obj.Spec.Repository = "mirror.example.com/etcd"
	if err := c.apply(t.Context(), plan.SetVersion{Pod: "a", UID: made.UID, From: "3.6.16", To: "3.6.16", Admitted: before}); err != nil {
		t.Fatal(err)
	}
	w.editPod("a", func(pod *corev1.Pod) {
		kubelet(pod, ended(0, ""), corev1.ContainerState{}, runs(), corev1.ContainerState{}, 0)
	})
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := o.Pod("a"); p == nil || p.Admitted == before || p.Restarting {
		t.Errorf("the pod is seen as %+v", p)
	}
}
