// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

const (
	// LongestSleep is the longest time between two passes. The clock may change meanwhile.
	LongestSleep = time.Minute
	// LongestErrorWait limits the wait after a failed request to Kubernetes.
	LongestErrorWait = 15 * time.Second

	// errorWait is the wait after the first failure.
	errorWait = 500 * time.Millisecond
)

// ErrorWait returns the wait after a number of failures in a row. It doubles with each
// failure, up to a limit.
func ErrorWait(failures int, limit time.Duration) time.Duration {
	return min(errorWait<<min(max(failures-1, 0), 8), limit)
}

// Backoff delays passes after failed requests to Kubernetes. Its zero value delays nothing.
type Backoff struct {
	failures int // in a row
	until    time.Time
}

// Fail counts a failure, and returns how long the next pass must wait.
func (b *Backoff) Fail(now time.Time) time.Duration {
	b.failures++
	wait := ErrorWait(b.failures, LongestErrorWait)
	b.until = now.Add(wait)
	return wait
}

// Failures returns the number of failures in a row.
func (b *Backoff) Failures() int { return b.failures }

// Reset forgets all failures, after a pass without one.
func (b *Backoff) Reset() { *b = Backoff{} }

// Skip ends the wait, but keeps the count. An edit may remove the cause.
func (b *Backoff) Skip() { b.until = time.Time{} }

// Remaining returns how long the wait still lasts. A longer one than LongestErrorWait means
// that the clock moved back, and does not count.
func (b *Backoff) Remaining(now time.Time) time.Duration {
	if wait := b.until.Sub(now); wait > 0 && wait <= LongestErrorWait {
		return wait
	}
	return 0
}
