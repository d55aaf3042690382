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

// A Roll follows a rolling restart of members, from its creation until its check.
type Roll struct {
	stop  func()
	moved func() []string // messages of the events Leader Moved, since the start

	mu       sync.Mutex
	begun    time.Time
	size     int
	pods     map[string]*corev1.Pod
	images   map[string]string // as of the start
	changed  []change
	lost     map[string]time.Time // when a pod that served in its image ceased to be ready
	started  map[string]time.Time // when etcd first ran in the new image of a pod, to the second
	leaders  []sighting
	problems []error
}

type change struct {
	pod string
	at  time.Time
}

// A sighting is a member's answer that it leads in a raft term.
type sighting struct {
	pod  string
	term uint64
	// The answer was given between these times. On a loaded machine, much may happen in
	// between.
	asked, answered time.Time
}

// WatchRoll starts to follow the pods and the leader.
func (c *Cluster) WatchRoll(ctx context.Context) *Roll {
	r := &Roll{pods: map[string]*corev1.Pod{}, images: map[string]string{}, lost: map[string]time.Time{}, started: map[string]time.Time{}}
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

// lagTime is how long the operator may not know yet that a pod is no longer ready: a probe of a
// loaded machine can fail at the moment at which the operator acts.
const lagTime = time.Second

func serves(pod *corev1.Pod) bool { return Ready(pod) && runsItsImage(pod) }

// see records a pod's change from the watch. One watch delivers all changes, in the API
// server's order.
func (r *Roll) see(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.pods[pod.Name]; known != nil && serves(known) && !serves(pod) {
		r.lost[pod.Name] = time.Now()
	}
	r.pods[pod.Name] = pod
	image := etcdContainer(pod).Image
	if _, known := r.started[pod.Name]; !known && image != r.images[pod.Name] {
		if at, runs := runsSince(pod); runs {
			r.started[pod.Name] = at
		}
	}
	if image == r.images[pod.Name] || r.hasChanged(pod.Name) {
		return
	}
	// An untouched pod may be unready at this moment by chance.
	var waiting []string
	for _, before := range r.changed {
		lost := r.lost[before.pod]
		if !serves(r.pods[before.pod]) && (!lost.After(before.at) || time.Since(lost) > lagTime) {
			waiting = append(waiting, before.pod)
		}
	}
	// The operator asks etcd whether a member serves. The kubelet may notice it later, of one
	// member at a time and while another pod is ready.
	if len(waiting) > 1 || len(waiting) > 0 && len(waiting) == r.size-1 {
		r.problems = append(r.problems, fmt.Errorf("%s was changed while %v were not ready", pod.Name, waiting))
	}
	r.changed = append(r.changed, change{pod.Name, time.Now()})
}

func (r *Roll) hasChanged(pod string) bool {
	return slices.ContainsFunc(r.changed, func(c change) bool { return c.pod == pod })
}

// runsItsImage reports whether etcd runs the image in the pod's spec: after an edit, the old
// container runs until the kubelet acts.
func runsItsImage(pod *corev1.Pod) bool {
	_, runs := runsSince(pod)
	return runs
}

// runsSince returns since when etcd runs the image in the pod's spec, to the second.
func runsSince(pod *corev1.Pod) (at time.Time, runs bool) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == "etcd" && s.State.Running != nil && s.Image == etcdContainer(pod).Image {
			return s.State.Running.StartedAt.Time, true
		}
	}
	return at, false
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

// Check ends the roll and returns its faults: a member that was changed before the one before it
// had restarted, three members out of the Service at a time, or no member in it, or a leader that
// was restarted or moved before the last follower.
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
		next := r.changed[i+1]
		if at, known := r.started[change.pod]; !known || at.After(next.at) {
			problems = append(problems, fmt.Errorf("%s was changed before %s had restarted", next.pod, change.pod))
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

// ledThroughout reports whether a pod led in the same term before the previous change, or at
// the start, and still at its own change. Then no observer can have seen another leader in
// between. Members may elect another leader at any time, so a sighting shortly before a change
// proves nothing.
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
