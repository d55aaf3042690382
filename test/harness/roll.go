// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A Roll follows how members are restarted one by one, from when it is made
// until it is checked.
type Roll struct {
	stop  func()
	moved func() []string // messages of the events Leader Moved, since the start

	mu       sync.Mutex
	begun    time.Time
	size     int
	pods     map[string]*corev1.Pod
	images   map[string]string // as of the start
	changed  []change
	leaders  []sighting
	problems []error
}

type change struct {
	pod string
	at  time.Time
}

// A sighting is a member that said that it leads, in a term of raft.
type sighting struct {
	pod  string
	term uint64
	// It said so after it was asked and before its answer was here. On a loaded
	// machine much may happen in between.
	asked, answered time.Time
}

// WatchRoll starts to follow the pods and the leader.
func (c *Cluster) WatchRoll(ctx context.Context) *Roll {
	r := &Roll{pods: map[string]*corev1.Pod{}, images: map[string]string{}}
	for _, pod := range c.Pods() {
		r.pods[pod.Name] = pod
		r.images[pod.Name] = etcdContainer(pod).Image
	}
	r.size = len(r.pods)
	before := len(c.EventMessages("Leader Moved"))
	r.moved = func() []string { return c.EventMessages("Leader Moved")[before:] }
	r.lookForLeader(ctx, c)
	r.begun = time.Now()
	release := c.OnPod(r.see)
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() { r.watchLeader(ctx, c) })
	r.stop = func() {
		release()
		cancel()
		looking.Wait()
	}
	return r
}

// see takes a pod as the watch tells it. All changes come through one watch, so
// that their order is that in which the API server made them.
func (r *Roll) see(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[pod.Name] = pod
	image := etcdContainer(pod).Image
	if image == r.images[pod.Name] || r.hasChanged(pod.Name) {
		return
	}
	// That a pod which was not touched isn't ready at this moment may be chance.
	for _, before := range r.changed {
		if other := r.pods[before.pod]; !Ready(other) || !runsItsImage(other) {
			r.problems = append(r.problems, fmt.Errorf("%s was changed while %s was not ready", pod.Name, before.pod))
		}
	}
	r.changed = append(r.changed, change{pod.Name, time.Now()})
}

func (r *Roll) hasChanged(pod string) bool {
	return slices.ContainsFunc(r.changed, func(c change) bool { return c.pod == pod })
}

// runsItsImage says whether etcd runs as the pod's spec says: after a change of the
// image the pod is as it was until the kubelet acts.
func runsItsImage(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.Name == "etcd" && s.State.Running != nil && s.Image == etcdContainer(pod).Image
	})
}

func (r *Roll) watchLeader(ctx context.Context, c *Cluster) {
	for {
		r.lookForLeader(ctx, c)
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (r *Roll) lookForLeader(ctx context.Context, c *Cluster) {
	for _, pod := range c.livePods() {
		asked := time.Now()
		status, err := c.memberStatus(ctx, pod)
		if err == nil && status.Leader == status.Header.MemberId {
			r.mu.Lock()
			r.leaders = append(r.leaders, sighting{pod.Name, status.RaftTerm, asked, time.Now()})
			r.mu.Unlock()
		}
	}
}

// Check ends the roll and tells what was wrong: two members down at a time, or
// a leader that was restarted, or moved off, while followers were still to come.
func (r *Roll) Check() error {
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := r.problems
	if len(r.changed) != r.size {
		problems = append(problems, fmt.Errorf("%d of %d pods were changed: %v", len(r.changed), r.size, r.changed))
	}
	for i, change := range r.changed {
		if i == len(r.changed)-1 {
			break
		}
		if r.ledThroughout(i) {
			problems = append(problems, fmt.Errorf("%s led while it was changed, as number %d of %d", change.pod, i+1, r.size))
		}
		for _, moved := range r.moved() {
			if strings.Contains(moved, "from member "+change.pod+" ") {
				problems = append(problems, fmt.Errorf("%s was changed as number %d of %d, and the operator had it hand over: %s", change.pod, i+1, r.size, moved))
			}
		}
	}
	return errors.Join(problems...)
}

// ledThroughout says whether a pod led in one and the same term before the change
// that came before its own, or at the start, and still when its own was made: then
// nobody who looked in between can have seen another leader. Members also elect one whenever
// they like to, so that a sighting shortly before a change says nothing.
func (r *Roll) ledThroughout(i int) bool {
	own, since := r.changed[i], r.begun
	if i > 0 {
		since = r.changed[i-1].at
	}
	return slices.ContainsFunc(r.leaders, func(early sighting) bool {
		if early.pod != own.pod || early.answered.After(since) {
			return false
		}
		return slices.ContainsFunc(r.leaders, func(late sighting) bool {
			return late.pod == early.pod && late.term == early.term && late.asked.After(own.at)
		})
	})
}
