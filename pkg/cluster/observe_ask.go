// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// askPods asks the pods that can be reached and pass a filter something, all at once. It returns the answers by
// the names of the pods, without those that give none within a time. what completes "pod a ...", for the log.
func askPods[T any](ctx context.Context, c *Cluster, o *plan.Observation, timeout time.Duration, what string, asked func(*manifest.PodState) bool, ask func(context.Context, *manifest.PodState) (T, error)) map[string]T {
	var pods []*manifest.PodState
	for i := range o.Pods {
		if p := &o.Pods[i]; !p.Deleting && p.IP != "" && asked(p) {
			pods = append(pods, p)
		}
	}
	if len(pods) == 0 { // as in nearly all passes
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var asking sync.WaitGroup
	var mu sync.Mutex
	said := map[string]T{}
	for _, p := range pods {
		asking.Go(func() {
			err := watchdog.Guard(func() error {
				answer, err := ask(ctx, p)
				if err == nil {
					mu.Lock()
					said[p.Name] = answer
					mu.Unlock()
				}
				return err
			})
			if err != nil {
				c.log.WithError(err).Debugf("pod %s %s", p.Name, what)
			}
		})
	}
	asking.Wait()
	return said
}
