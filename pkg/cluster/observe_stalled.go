// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// findStalled finds the members that answer and do not commit. While a quorum serves, it asks
// each voter with a leader for a linearizable read of its own, all at once. etcd's
// --strict-reconfig-check does not detect such members: their connections are alive.
func findStalled(ctx context.Context, o *plan.Observation, answers []answer) {
	if !o.Quorum {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i := range answers {
		if s := answers[i].status; s == nil || s.Learner || s.LeaderID == 0 {
			continue
		}
		asked.Go(func() {
			answers[i].stalled = watchdog.Guard(func() (err error) {
				answers[i].position, err = answers[i].conn.Commits(ctx)
				return err
			}) != nil
		})
	}
	asked.Wait()
}
