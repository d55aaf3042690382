// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A Roll follows how members are restarted one by one, from when it is made
// until it is checked.
type Roll struct {
	stop func()

	mu       sync.Mutex
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

type sighting struct {
	pod string
	at  time.Time
}

// WatchRoll starts to follow the pods and the leader.
func (c *Cluster) WatchRoll(ctx context.Context) *Roll {
	r := &Roll{pods: map[string]*corev1.Pod{}, images: map[string]string{}}
	for _, pod := range c.Pods() {
		r.pods[pod.Name] = pod
		r.images[pod.Name] = etcdContainer(pod).Image
	}
	r.size = len(r.pods)
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
	if image == r.images[pod.Name] || slices.ContainsFunc(r.changed, func(c change) bool { return c.pod == pod.Name }) {
		return
	}
	r.changed = append(r.changed, change{pod.Name, time.Now()})
	for name, other := range r.pods {
		if name != pod.Name && !Ready(other) {
			r.problems = append(r.problems, fmt.Errorf("%s was changed while %s was not ready", pod.Name, name))
		}
	}
}

func (r *Roll) watchLeader(ctx context.Context, c *Cluster) {
	for {
		for _, pod := range c.livePods() {
			status, err := c.memberStatus(ctx, pod)
			if err == nil && status.Leader == status.Header.MemberId {
				r.mu.Lock()
				r.leaders = append(r.leaders, sighting{pod.Name, time.Now()})
				r.mu.Unlock()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Check ends the roll and tells what was wrong: two members down at a time, or
// a leader that was restarted while followers were still to come.
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
		// Moving the leader off takes an instant, so whoever was seen to lead
		// shortly before was either a leader taken too early or moved too early.
		for _, leader := range r.leaders {
			if leader.pod == change.pod && !leader.at.After(change.at) && change.at.Sub(leader.at) < time.Second {
				problems = append(problems, fmt.Errorf("%s led %s before it was changed, as number %d of %d",
					change.pod, change.at.Sub(leader.at).Round(time.Millisecond), i+1, r.size))
				break
			}
		}
	}
	return errors.Join(problems...)
}
