// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func etcdPod(name, image, runs string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: image}}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "etcd", Image: runs, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
			}},
		},
	}
}

// roll is a Roll over a, b and c, of which a leads in term 2.
func roll() *Roll {
	r := &Roll{stop: func() {}, moved: func() []string { return nil }, size: 3, pods: map[string]*corev1.Pod{}, images: map[string]string{}, lost: map[string]time.Time{}, started: map[string]time.Time{}}
	for _, name := range []string{"a", "b", "c"} {
		r.pods[name], r.images[name] = etcdPod(name, "old", "old", corev1.ConditionTrue), "old"
	}
	leads(r, "a", 2)
	r.begun = time.Now()
	return r
}

// tick lets time pass between what happens.
func tick() { time.Sleep(time.Millisecond) }

func leads(r *Roll, pod string, term uint64) {
	tick()
	asked := time.Now()
	r.leaders = append(r.leaders, sighting{pod, term, asked, time.Now()})
}

func patch(r *Roll, pod string) {
	tick()
	r.see(etcdPod(pod, "new", "old", corev1.ConditionTrue))
}

func restart(r *Roll, pod string) {
	tick()
	r.see(etcdPod(pod, "new", "new", corev1.ConditionFalse))
	r.see(etcdPod(pod, "new", "new", corev1.ConditionTrue))
}

func change3(r *Roll, order ...string) {
	for _, name := range order {
		patch(r, name)
		restart(r, name)
	}
}

func TestRoll(t *testing.T) {
	cases := []struct {
		name string
		roll func(*Roll)
		want string
	}{
		{"one by one, leader last", func(r *Roll) {
			change3(r, "b", "c")
			r.moved = func() []string { return []string{"Leadership moved from member a to member b"} }
			change3(r, "a")
		}, ""},
		{"leader first", func(r *Roll) {
			patch(r, "a")
			leads(r, "a", 2)
			restart(r, "a")
			change3(r, "b", "c")
		}, "a led while it was changed, as number 1 of 3"},
		{"leader second", func(r *Roll) {
			change3(r, "b")
			patch(r, "a")
			leads(r, "a", 2)
			restart(r, "a")
			change3(r, "c")
		}, "a led while it was changed, as number 2 of 3"},
		{"a leader that the members elected after the operator looked", func(r *Roll) {
			change3(r, "b")
			leads(r, "c", 3)
			patch(r, "c")
			leads(r, "c", 3)
			restart(r, "c")
			leads(r, "a", 4)
			change3(r, "a")
		}, ""},
		{"a leader that the members gave up before the operator looked", func(r *Roll) {
			leads(r, "a", 2)
			change3(r, "a", "b", "c")
		}, ""},
		{"one that leads when it has its turn behind it", func(r *Roll) {
			change3(r, "b")
			leads(r, "b", 3)
			change3(r, "c")
			leads(r, "b", 3)
			change3(r, "a")
		}, ""},
		{"leader moved too early", func(r *Roll) {
			r.moved = func() []string { return []string{"Leadership moved from member a to member b"} }
			change3(r, "a", "b", "c")
		}, "a was changed as number 1 of 3, and the operator had it hand over"},
		{"one too few", func(r *Roll) { change3(r, "b", "c") }, "2 of 3 pods"},
		{"two at a time", func(r *Roll) {
			patch(r, "b")
			r.see(etcdPod("b", "new", "new", corev1.ConditionFalse))
			patch(r, "c")
			r.see(etcdPod("c", "new", "new", corev1.ConditionFalse))
			change3(r, "a")
		}, "a was changed while [b c] were not ready"},
		{"two at a time, before the kubelet has acted", func(r *Roll) {
			patch(r, "b")
			patch(r, "c")
			restart(r, "b")
			restart(r, "c")
			change3(r, "a")
		}, "c was changed before b had restarted"},
		{"one that the kubelet never restarts", func(r *Roll) {
			patch(r, "b")
			change3(r, "c", "a")
		}, "c was changed before b had restarted"},
		{"one that the kubelet reports late", func(r *Roll) {
			patch(r, "b")
			began := etcdPod("b", "new", "new", corev1.ConditionFalse)
			patch(r, "c")
			r.see(began)
			restart(r, "b")
			restart(r, "c")
			change3(r, "a")
		}, ""},
		{"a probe that fails while the operator acts", func(r *Roll) {
			change3(r, "b")
			r.see(etcdPod("b", "new", "new", corev1.ConditionFalse))
			time.Sleep(lagTime / 2)
			change3(r, "c", "a")
		}, ""},
		{"probes that failed long before the operator acts", func(r *Roll) {
			change3(r, "b", "c")
			r.see(etcdPod("b", "new", "new", corev1.ConditionFalse))
			r.see(etcdPod("c", "new", "new", corev1.ConditionFalse))
			time.Sleep(2 * lagTime)
			change3(r, "a")
		}, "a was changed while [b c] were not ready"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := roll()
				c.roll(r)
				err := r.Check()
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("Check says %v, want %q", err, c.want)
				}
			})
		})
	}
}
