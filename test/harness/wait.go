// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"testing"
	"time"
)

// The time between two looks grows with the time that was waited: a look that asks the
// API server costs more than most of what the tests wait for.
const (
	interval    = 25 * time.Millisecond
	maxInterval = 500 * time.Millisecond
	// holding is the time between two looks at what must not happen. What would last
	// shorter is seen by the watches of a record.
	holding = 100 * time.Millisecond
)

// note begins what helpers log. The place that is printed before it is that of the test
// which called them, the same as that of their failures: by this hack/testsummary tells
// them apart.
const note = "note: "

// Wait looks again and again until check finds nothing missing. When that
// takes longer than within, the test fails and tells what was still missing.
func Wait(t testing.TB, what string, within time.Duration, check func(context.Context) error) {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	missing := check(ctx)
	for missing != nil {
		pause := min(max(interval, time.Since(start)/10), maxInterval)
		select {
		case <-ctx.Done():
			t.Fatalf("waited %s for: %s; last seen: %v", time.Since(start).Round(time.Millisecond), what, missing)
		case <-time.After(pause):
		}
		// A check that was cut off by the end of the wait says nothing new.
		if err := check(ctx); err == nil || ctx.Err() == nil {
			missing = err
		}
	}
	t.Logf(note+"%s after %s", what, time.Since(start).Round(time.Millisecond))
}

// Holds looks again and again for as long as the test wants to be sure that
// nothing happens, and fails as soon as check finds something.
func Holds(t testing.TB, what string, during time.Duration, check func(context.Context) error) {
	t.Helper()
	start := time.Now()
	for time.Since(start) < during {
		if err := check(t.Context()); err != nil {
			t.Fatalf("should hold for %s: %s; after %s: %v", during, what, time.Since(start).Round(time.Millisecond), err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, context.Cause(t.Context()))
		case <-time.After(holding):
		}
	}
}
