// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// job runs one function beside the passes. The next pass takes its result.
type job struct {
	done   chan func()
	cancel context.CancelFunc
}

// start runs do, and then wake. Its result is applied by the pass that collects it; failed replaces
// it if do panics.
func (j *job) start(ctx context.Context, timeout time.Duration, wake func(), do func(context.Context) func(), failed func(error)) {
	ctx, j.cancel = context.WithTimeout(ctx, timeout)
	j.done = make(chan func(), 1)
	go func(done chan<- func()) {
		var apply func()
		err := watchdog.Guard(func() error {
			apply = do(ctx)
			return nil
		})
		if err != nil {
			apply = func() { failed(err) }
		}
		done <- apply
		wake()
	}(j.done)
}

// running reports whether a job runs, and applies the result of one that has ended.
func (j *job) running() bool {
	if j.done == nil {
		return false
	}
	select {
	case apply := <-j.done:
		j.cancel()
		j.done = nil
		apply()
		return false
	default:
		return true
	}
}

// end ends the job and waits for it.
func (j *job) end() {
	if j.done != nil {
		j.cancel()
		<-j.done
		j.done = nil
	}
}
