// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

const (
	// recordInterval is the least time between two writes of the record for only the raft
	// index and the revision.
	recordInterval = 5 * time.Minute
	// automaticRecordInterval replaces it with automatic recovery, also if nothing has moved: the
	// time of the record bounds the writes that nobody knows of.
	automaticRecordInterval = time.Minute
	// recordAhead is how far the clock of another operator may be ahead. A record further in the
	// future would stay until then.
	recordAhead = 10 * time.Second
)

// setRecord records what a quorum agrees on. A contradicted record stays.
func setRecord(st *api.ClusterStatus, o *plan.Observation, s plan.Step) {
	switch reason, _ := o.Contradiction(); {
	case reason != "":
		st.Record = o.Record
	case o.Quorum && st.Phase == api.ClusterPhaseRunning:
		st.Record = o.FreshRecord(s)
	}
}

// keepRecord keeps the recorded index and revision while nothing else is new and they are
// recent, or have not moved. A date in the future is that of another clock, and says nothing.
func keepRecord(st *api.ClusterStatus, old *api.ClusterRecord, now time.Time, automatic bool) {
	r := st.Record
	if r == nil || old == nil || r.ClusterID != old.ClusterID || !slices.Equal(r.Members, old.Members) {
		return
	}
	written, err := time.Parse(time.RFC3339, old.LastUpdateTime)
	if err == nil && written.Sub(now) > recordAhead {
		return
	}
	moved := r.RaftIndex != old.RaftIndex || r.Revision != old.Revision
	if moved && (err != nil || now.Sub(written) >= recordInterval) {
		return
	}
	if automatic && (err != nil || now.Sub(written) >= automaticRecordInterval) {
		return
	}
	st.Record = old
}
