// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import "time"

const (
	// DefaultRecoveryPatience is the time from the loss of a quorum to the automatic recovery
	// where recovery.patienceInSecond is unset.
	DefaultRecoveryPatience = 600 * time.Second
	// DefaultMaxLost is the time before the loss where recovery.maxLostInSecond is unset. With
	// automatic recovery, the operator records each minute that it sees a quorum.
	DefaultMaxLost = 120 * time.Second
)

// RecoversAutomatically reports whether the operator may choose a way out of a lost quorum.
func (s *ClusterSpec) RecoversAutomatically() bool {
	return s.Recovery != nil && s.Recovery.Mode == RecoveryAutomatic
}

// Patience is the time from the loss of the quorum to the automatic recovery.
func (p *RecoveryPolicy) Patience() time.Duration {
	if p == nil || p.PatienceInSecond == nil {
		return DefaultRecoveryPatience
	}
	return seconds(*p.PatienceInSecond)
}

// MaxLost is the time before the loss of which writes may be lost unseen.
func (p *RecoveryPolicy) MaxLost() time.Duration {
	if p == nil || p.MaxLostInSecond == nil {
		return DefaultMaxLost
	}
	return seconds(*p.MaxLostInSecond)
}
