//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"testing"
	"time"
)

// await looks until something holds, a minute at most. members.Await looks too seldom for the fast clock.
// missing says what does not hold.
func await(t *testing.T, holds func() bool, missing func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(missing())
		}
	}
}
