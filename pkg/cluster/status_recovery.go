// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// recoveryInterval is the least time between two writes of the ways out, and of the reason of a
// choice.
const recoveryInterval = 20 * time.Second

// recoveryHeartbeat is the longest time between two writes while there is no quorum. The next
// operator sees from it that the quorum has been lost all the time.
const recoveryHeartbeat = time.Minute

// setRecovery lists the ways out of a lost quorum. With a quorum, only a choice that came too
// late remains, so that the next loss does not revive it.
func setRecovery(st *api.ClusterStatus, o *plan.Observation) {
	choice, _ := o.FollowedChoice()
	old := o.Status.Recovery
	switch {
	case o.QuorumLost():
		left := o.Left()
		st.Recovery = &api.RecoveryStatus{
			LastRevision: left.LastRevision(), Ways: left.Ways(), Choice: choice, LastUpdateTime: o.Now.UTC().Format(time.RFC3339),
			LostDate: o.LostDate().UTC().Format(time.RFC3339),
		}
		st.Recovery.Automatic, _ = o.Automatic()
		if at := o.LastQuorumDate(); !at.IsZero() {
			st.Recovery.LastQuorumDate = at.UTC().Format(time.RFC3339)
		}
		keepRecovery(st.Recovery, old, o.Now)
	case choice != nil && (o.Quorum || old == nil):
		st.Recovery = &api.RecoveryStatus{Choice: choice}
	case o.Quorum:
		st.Recovery = nil
	case old != nil:
		st.Recovery.Choice = choice
	}
}

// keepRecovery keeps what is recent, and what has not changed.
func keepRecovery(next, old *api.RecoveryStatus, now time.Time) {
	if old == nil || old.LastUpdateTime == "" {
		return
	}
	written, err := time.Parse(time.RFC3339, old.LastUpdateTime)
	ago := now.Sub(written).Abs() // another clock may be ahead
	recent := err == nil && ago < recoveryInterval
	same := ago < recoveryHeartbeat && next.LastRevision == old.LastRevision && slices.Equal(next.Ways, old.Ways)
	if n, o := next.Automatic, old.Automatic; n != nil && o != nil && n.Phase != api.AutomaticYielded {
		if *n != *o {
			same = false
		}
		if recent {
			next.Automatic = o
		}
	}
	if n, o := next.Choice, old.Choice; n != nil && o != nil && n.Value == o.Value && n.Phase == o.Phase {
		if n.Reason != o.Reason {
			same = false
		}
		if recent {
			n.Reason = o.Reason
		}
	}
	if same || recent {
		next.LastRevision, next.Ways, next.LastUpdateTime = old.LastRevision, old.Ways, old.LastUpdateTime
	}
}

// automaticChanged reports what the automatic recovery is about to do. The reason of a block may
// change often; the status has it.
func (n *notices) automaticChanged(old, st *api.AutomaticRecovery) {
	if st == nil || old != nil && old.Phase == st.Phase && old.Value == st.Value {
		return
	}
	switch st.Phase {
	case api.AutomaticWaiting:
		n.Warning("Recovery Announced", "The automatic recovery %s", st.Message)
	case api.AutomaticBlocked, api.AutomaticYielded:
		n.Warning("Recovery Blocked", "The automatic recovery %s", st.Message)
	}
}

// recoveryChanged reports the plan of the automatic recovery, and the stages of a chosen way out.
func (n *notices) recoveryChanged(old, st *api.RecoveryStatus) {
	if st == nil {
		return
	}
	if old == nil {
		old = &api.RecoveryStatus{}
	}
	n.automaticChanged(old.Automatic, st.Automatic)
	c := st.Choice
	if c == nil || old.Choice != nil && old.Choice.Value == c.Value && old.Choice.Phase == c.Phase && old.Choice.Automatic == c.Automatic {
		return
	}
	if c.Automatic && (old.Choice == nil || !old.Choice.Automatic) {
		n.Warning("Automatic Recovery", "There is no quorum since %s, and spec.recovery.mode is Automatic: the operator takes the way out %s, as it has announced", st.LostDate, c.Value)
	}
	switch c.Phase {
	case api.RecoveryRefused:
		n.Warning("Recovery Refused", "The way out %s cannot be taken now: %s", c.Value, c.Reason)
	case api.RecoveryFailed:
		n.Warning("Recovery Failed", "The way out %s is not taken: %s", c.Value, c.Reason)
	case api.RecoveryBackingUp:
		n.Normal("Recovery Started", "The way out is %s: EtcdBackup %s stores its data, at revision %d or later", c.Value, c.Backup, c.Revision)
	case api.RecoveryRestoring:
		n.Normal("Recovery Restoring", "The way out is %s: an EtcdRestore continues the cluster from EtcdBackup %s: %s", c.Value, c.Backup, c.Message)
	}
}
