// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
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
		if !o.QuorumReturned.IsZero() {
			t.Errorf("look %d: a quorum that returned at %s, in a cluster that has not served", i, o.QuorumReturned)
		}
		if want := noon.Add(look.since); look.since < 0 && !o.QuorumSince.IsZero() || look.since >= 0 && !o.QuorumSince.Equal(want) {
			t.Errorf("look %d: a quorum since %s, want %s", i, o.QuorumSince, want)
		}
	}
}

// A quorum was back for 80 milliseconds after an outage, and all members looked healthy. The
// operator recreated a pod for an edit. The disk of another member hung, and one of three was left.
func TestAQuorumThatReturnsFromAnOutageIsKnown(t *testing.T) {
	var q quorumLog
	for i, look := range []struct {
		after    time.Duration
		quorum   bool
		returned time.Duration // from noon; -1: none
	}{
		{0, true, -1},
		{8 * time.Second, false, -1},
		{10 * time.Second, true, -1}, // an election
		{18 * time.Second, false, -1},
		{20 * time.Second, false, -1},
		{21 * time.Second, true, 21 * time.Second},
		{29 * time.Second, true, 21 * time.Second},
		{30 * time.Second, false, 21 * time.Second},
		{90 * time.Second, true, 90 * time.Second},
	} {
		o := &plan.Observation{Now: noon.Add(look.after), Quorum: look.quorum, Status: api.ClusterStatus{Phase: api.ClusterPhaseRunning}}
		q.look(o)
		if want := noon.Add(look.returned); look.returned < 0 && !o.QuorumReturned.IsZero() || look.returned >= 0 && !o.QuorumReturned.Equal(want) {
			t.Errorf("look %d: the quorum returned at %s, want %s", i, o.QuorumReturned, want)
		}
	}
}
