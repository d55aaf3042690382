// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"testing"
	"time"
)

// The pause between two checks grows with the elapsed time: a check that asks the API server
// costs more than most of what tests wait for.
const (
	interval    = 25 * time.Millisecond
	maxInterval = 500 * time.Millisecond
	// holding is the pause between two checks of what must not happen. The watches of a record
	// see shorter events.
	holding = 100 * time.Millisecond
)

// note starts the log lines of helpers. The log shows the place of the test that called the
// helper, as for its failures. By note, hack/testsummary distinguishes the two.
const note = "note: "

// Wait repeats check until it returns no error. After within, the test fails with the last
// error.
func Wait(t testing.TB, what string, within time.Duration, check func(context.Context) error) {
	t.Helper()
	start := time.Now()
	if missing := Try(t, within, check); missing != nil {
		t.Fatalf("waited %s for: %s; last seen: %v", time.Since(start).Round(time.Millisecond), what, missing)
	}
	t.Logf(note+"%s after %s", what, time.Since(start).Round(time.Millisecond))
}

// Try repeats check until it returns nil, and returns its last error if it does not within the
// given time.
func Try(t testing.TB, within time.Duration, check func(context.Context) error) error {
	t.Helper()
	start := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	missing := check(ctx)
	for missing != nil {
		pause := min(max(interval, time.Since(start)/10), maxInterval)
		select {
		case <-ctx.Done():
			return missing
		case <-time.After(pause):
		}
		// A check that the deadline has cut off adds nothing.
		if err := check(ctx); err == nil || ctx.Err() == nil {
			missing = err
		}
	}
	return nil
}

// Holds repeats check for the given time, and fails as soon as check returns an error.
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
