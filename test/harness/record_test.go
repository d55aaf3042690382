// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/internal/leader"
)

// The followed stream of an operator's log broke before the last lines, and resumed with the
// log of the next container.
func TestTheEndOfARestartedContainersLogIsRead(t *testing.T) {
	const name = "etcd-operator-1"
	lost := "error: " + leader.ErrLost.Error()
	cases := []struct {
		name     string
		previous string
		err      error
		starts   int64
		alarms   []string
	}{
		{name: "it lost its Lease", previous: "first\npanic: seen\n" + lost, starts: 1, alarms: []string{"panic: seen"}},
		{name: "it panicked", previous: "first\npanic: seen\npanic: at the end\n", alarms: []string{"panic: seen", "panic: at the end"}},
		{name: "its log was rotated", previous: "later\n" + lost, starts: 1, alarms: []string{"panic: seen"}},
		{name: "it ended without a reason", previous: "first\npanic: seen\nlast", alarms: []string{"panic: seen"}},
		// What was followed stays, with the lines of the next container.
		{name: "its log is gone", previous: "unable to retrieve container logs for a", starts: 1, alarms: []string{"panic: seen"}},
		{name: "its log cannot be read", err: errors.New("no API server"), starts: 1, alarms: []string{"panic: seen"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kube := fake.NewClientset()
			asked := 0
			kube.PrependReactor("get", "pods", func(action kubetesting.Action) (bool, runtime.Object, error) {
				opts, ok := action.(kubetesting.GenericAction).GetValue().(*corev1.PodLogOptions)
				if !ok || !opts.Previous || opts.Follow || opts.Container != "operator" {
					t.Errorf("asked for %+v", opts)
				}
				asked++
				return true, &runtime.Unknown{Raw: []byte(c.previous)}, c.err
			})
			followed := &tail{name: name + "/operator (start 1)", most: 400}
			next := &tail{name: name + "/operator (start 2)", most: 400}
			r := &record{logs: map[string]*tail{"a": followed, "b": next}, order: []string{"a", "b"}}
			for _, line := range []string{"first", "panic: seen", "of the next container: " + lost} {
				followed.add(line)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name: "operator", ContainerID: "b",
				State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: "a"}},
			}}}}
			n := &Namespace{Env: &Env{Kube: kube}}
			for range 2 { // the pod changes again
				var running sync.WaitGroup
				r.follow(context.Background(), &running, n, pod)
				running.Wait()
			}
			followed.add("of the next container: panic: ")
			if asked != 1 {
				t.Errorf("the log was read %d times", asked)
			}
			if starts := r.starts(name, leader.ErrLost.Error()); starts != c.starts {
				t.Errorf("%d starts ended with a lost Lease, want %d", starts, c.starts)
			}
			want := c.alarms
			if r.logs["a"] == followed {
				want = append(slices.Clone(want), "of the next container: panic: ")
			}
			if alarms := r.alarms(name); !slices.Equal(alarms, want) {
				t.Errorf("alarms %q, want %q", alarms, want)
			}
		})
	}
}
