// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "context"

// Job is long work in a goroutine of its own, so that the loop can stop it.
type Job[R any] struct {
	stop   context.CancelCauseFunc
	result chan R
}

// Start begins a job. When the job has returned, wake starts a pass, which finds the result.
func Start[R any](ctx context.Context, wake func(), work func(ctx context.Context) R) *Job[R] {
	ctx, stop := context.WithCancelCause(ctx)
	j := &Job[R]{stop: stop, result: make(chan R, 1)}
	go func() {
		defer stop(nil)
		j.result <- work(ctx)
		wake()
	}()
	return j
}

// Stop ends the context of the job, and does not wait.
func (j *Job[R]) Stop(cause error) { j.stop(cause) }

// Result returns the result once, after the job has returned.
func (j *Job[R]) Result() (result R, returned bool) {
	select {
	case result = <-j.result:
		return result, true
	default:
		return result, false
	}
}

// Wait waits for the result. It must not follow a Result that returned one.
func (j *Job[R]) Wait() R { return <-j.result }
