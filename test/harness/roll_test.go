// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func etcdPod(name, image string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: image}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// roll is a Roll over a, b and c, of which a led until a moment ago.
func roll() *Roll {
	r := &Roll{stop: func() {}, size: 3, pods: map[string]*corev1.Pod{}, images: map[string]string{}}
	for _, name := range []string{"a", "b", "c"} {
		r.pods[name], r.images[name] = etcdPod(name, "old", corev1.ConditionTrue), "old"
	}
	r.leaders = []sighting{{"a", time.Now()}}
	return r
}

func change3(r *Roll, order ...string) {
	for _, name := range order {
		r.see(etcdPod(name, "new", corev1.ConditionTrue))
		r.see(etcdPod(name, "new", corev1.ConditionFalse))
		r.see(etcdPod(name, "new", corev1.ConditionTrue))
	}
}

func TestRoll(t *testing.T) {
	cases := []struct {
		name string
		roll func(*Roll)
		want string
	}{
		{"one by one, leader last", func(r *Roll) { change3(r, "b", "c", "a") }, ""},
		{"leader first", func(r *Roll) { change3(r, "a", "b", "c") }, "a led"},
		{"one too few", func(r *Roll) { change3(r, "b", "c") }, "2 of 3 pods"},
		{"two at a time", func(r *Roll) {
			r.see(etcdPod("b", "new", corev1.ConditionFalse))
			r.see(etcdPod("c", "new", corev1.ConditionTrue))
			change3(r, "a")
		}, "c was changed while b was not ready"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := roll()
			c.roll(r)
			err := r.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Check says %v, want %q", err, c.want)
			}
		})
	}
}
