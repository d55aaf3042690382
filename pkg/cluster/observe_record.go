// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// remember keeps the newest facts in memory, ahead of the record.
func (c *Cluster) remember(o *plan.Observation, s plan.Step, st *api.ClusterStatus) {
	if reason, _ := o.Contradiction(); reason == "" && o.Quorum && st.Phase == api.ClusterPhaseRunning {
		c.memory = o.FreshRecord(s)
	}
}

// forgetOther drops the memory if somebody else has changed or removed the record. An API
// server that does not store the record does not count.
func (c *Cluster) forgetOther(st *api.ClusterStatus) {
	if !c.dropsRecord && !sameRecord(st.Record, c.status.Record) {
		c.memory = nil
	}
}

func sameRecord(a, b *api.ClusterRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return fmt.Sprint(*a) == fmt.Sprint(*b)
}

// testify notes the data of the member through which a quorum answered. Its status is from
// before that answer, and may have lagged behind then. If it seems to contradict the record,
// testify asks again.
func testify(ctx context.Context, o *plan.Observation, through answer) {
	take := func(s etcd.Status) {
		o.Seen = plan.Testimony{ClusterID: s.ClusterID, Index: s.RaftIndex, Revision: s.Revision}
	}
	take(*through.status)
	if r := o.Record; r == nil || int64(o.Seen.Index) >= r.RaftIndex && o.Seen.Revision >= r.Revision { // far from 2^63 entries
		return
	}
	status, err := within(ctx, statusTimeout, through.conn.Status)
	if err != nil || status.MemberID != through.status.MemberID {
		o.Seen.Index, o.Seen.Revision = 0, 0
		return
	}
	take(status)
}
