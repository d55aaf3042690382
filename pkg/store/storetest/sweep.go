// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"
)

func sweep(t *testing.T, s *suite) {
	in := s.open(t)
	s.Abandon(t, "sweep/etcd_v1")
	s.Abandon(t, "sweep/etcd_v2")
	s.Abandon(t, "sweep/etcd2_v1")
	s.putSize(t, in, "sweep/etcd_v3", 10)
	count := func() int { return len(s.Unfinished(t)) }
	if got := count(); got != 3 {
		t.Fatalf("%d uploads are abandoned, want 3", got)
	}
	all := func(string) bool { return true }
	now := time.Now()
	for _, tt := range []struct {
		name   string
		prefix string
		before time.Time
		mine   func(string) bool
		swept  int
		left   int
	}{
		{"too young", "sweep/etcd_v", now.Add(-time.Hour), all, 0, 3},
		{"not mine", "sweep/etcd_v", now.Add(time.Hour), func(string) bool { return false }, 0, 3},
		{"another prefix", "sweep/other", now.Add(time.Hour), all, 0, 3},
		{"one of them", "sweep/etcd_v", now.Add(time.Hour), func(key string) bool { return key == "sweep/etcd_v2" }, 1, 2},
		{"those with the prefix", "sweep/etcd_v", now.Add(time.Hour), all, 1, 1},
		{"again", "sweep/etcd_v", now.Add(time.Hour), all, 0, 1},
		{"the last", "sweep/etcd2_v1", now.Add(time.Hour), all, 1, 0},
	} {
		swept, err := in.Sweep(t.Context(), tt.prefix, tt.before, tt.mine)
		if err != nil || swept != tt.swept {
			t.Errorf("%s: %d uploads swept, want %d, error %v", tt.name, swept, tt.swept, err)
		}
		if left := count(); left != tt.left {
			t.Errorf("%s: %d uploads left, want %d", tt.name, left, tt.left)
		}
	}
	s.expectThere(t, in, "sweep/etcd_v3")
}

// sweepNothing is for stores whose servers remove interrupted uploads: Sweep must leave
// objects alone.
func sweepNothing(t *testing.T, s *suite) {
	in := s.open(t)
	s.putSize(t, in, "sweep/etcd_v3", 10)
	swept, err := in.Sweep(t.Context(), "sweep/", time.Now().Add(time.Hour), func(string) bool { return true })
	if err != nil || swept != 0 {
		t.Errorf("%d uploads swept, error %v", swept, err)
	}
	s.expectThere(t, in, "sweep/etcd_v3")
}
