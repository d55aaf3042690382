// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// A quorum is back, and one member answers later than the others. The operator removed it at
// the first look, because it had not answered before the outage either.
func TestAQuorumThatHasJustComeBackRemovesNobody(t *testing.T) {
	var q quorumLog
	for i, look := range []struct {
		after  time.Duration
		quorum bool
		since  time.Duration // of QuorumSince, from noon; -1: none
	}{
		{0, true, 0},
		{8 * time.Second, true, 0},
		{16 * time.Second, false, -1},
		{24 * time.Second, true, 24 * time.Second},
		{32 * time.Second, true, 24 * time.Second},
		{10 * time.Minute, true, 10 * time.Minute}, // the operator was frozen
	} {
		o := &plan.Observation{Now: noon.Add(look.after), Quorum: look.quorum}
		q.look(o)
		if want := noon.Add(look.since); look.since < 0 && !o.QuorumSince.IsZero() || look.since >= 0 && !o.QuorumSince.Equal(want) {
			t.Errorf("look %d: a quorum since %s, want %s", i, o.QuorumSince, want)
		}
	}
}
