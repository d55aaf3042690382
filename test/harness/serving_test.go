// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestServing(t *testing.T) {
	pod := func(name, image, runs string, ready corev1.ConditionStatus) *corev1.Pod {
		pod := etcdPod(name, image, runs, ready)
		pod.UID = types.UID(name)
		return pod
	}
	ended := func(name string) *corev1.Pod {
		pod := pod(name, "old", "old", corev1.ConditionTrue)
		pod.DeletionTimestamp = &metav1.Time{}
		return pod
	}
	cases := []struct {
		name string
		pods []*corev1.Pod
		want int
	}{
		{"nothing", nil, 3},
		{"not ready for a while", []*corev1.Pod{pod("a", "old", "old", corev1.ConditionFalse), pod("b", "old", "old", corev1.ConditionFalse)}, 3},
		{"one after the other", []*corev1.Pod{
			ended("a"), pod("d", "old", "old", corev1.ConditionFalse), pod("d", "old", "old", corev1.ConditionTrue), ended("b"),
		}, 2},
		{"two at a time", []*corev1.Pod{ended("a"), pod("d", "old", "old", corev1.ConditionFalse), ended("b")}, 1},
		{"other images at a time", []*corev1.Pod{pod("a", "new", "old", corev1.ConditionTrue), pod("b", "new", "old", corev1.ConditionTrue)}, 1},
		{"other images one after the other", []*corev1.Pod{
			pod("a", "new", "old", corev1.ConditionTrue), pod("a", "new", "new", corev1.ConditionTrue), pod("b", "new", "old", corev1.ConditionTrue),
		}, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &Serving{release: func() {}, images: map[types.UID]string{"a": "old", "b": "old", "c": "old"}, fewest: 3}
			for _, pod := range c.pods {
				s.see(pod)
			}
			if got := s.Fewest(); got != c.want {
				t.Errorf("the fewest were %d, want %d", got, c.want)
			}
		})
	}
}
