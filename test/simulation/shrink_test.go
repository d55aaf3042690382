// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// shrink drops faults from a failed life while it still fails in the same way, and returns the
// rest. It stops after a time.
func shrink(t *testing.T, r result, patience time.Duration) result {
	t.Helper()
	began := time.Now()
	for size := max(1, len(r.faults)/2); ; size /= 2 {
		for at := 0; at < len(r.faults); {
			if time.Since(began) > patience {
				return r
			}
			drop := r.faults[at:min(len(r.faults), at+size)]
			without := map[string]bool{}
			for id := range r.life.without {
				without[id] = true
			}
			for _, id := range drop {
				without[id] = true
			}
			// Another course of events has calls and faults of its own.
			next := live(t, life{seed: r.life.seed, backups: r.life.backups, imports: r.life.imports, storms: r.life.storms, aimed: r.life.aimed, without: without}, false)
			if sameFailure(next.failure, r.failure) && len(next.faults) < len(r.faults) {
				r = next
				continue
			}
			at += len(drop)
		}
		if size <= 1 {
			return r
		}
	}
}

// sameFailure compares violations, without names and numbers.
func sameFailure(a, b string) bool {
	words := func(s string) []string {
		fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" 0123456789:=()", r) })
		return fields[:min(4, len(fields))]
	}
	return a != "" && slices.Equal(words(a), words(b))
}
