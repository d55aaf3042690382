// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"maps"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// LeasesLeft returns the leases that the changes of a segment refer to and that the segment does not have.
// Those before it may have them.
func LeasesLeft(s *changelog.Segment) []int64 {
	left := map[int64]bool{}
	for _, r := range s.Revisions {
		for _, c := range r.Changes {
			if id := etcd.LeaseOf(c.KeyValue); id != 0 {
				left[id] = true
			}
		}
	}
	for _, l := range s.Leases {
		delete(left, l.ID)
	}
	return slices.Sorted(maps.Keys(left))
}
