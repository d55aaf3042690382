// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import "cmp"

// LogEnd is the last raft entry in the write-ahead log of a member, whether it has applied it or not.
//
// The log with the later end has every committed entry that the other has: raft elects no leader whose
// log ends before that of a voter (section 5.4.1 of the paper "In Search of an Understandable Consensus
// Algorithm"). What a member has applied says less. It learns only with the next message of the leader
// what is committed.
type LogEnd struct{ Term, Index uint64 }

// Compare returns -1 if the log ends before another one, +1 if after it, and 0 if both end alike.
func (e LogEnd) Compare(other LogEnd) int {
	return cmp.Or(cmp.Compare(e.Term, other.Term), cmp.Compare(e.Index, other.Index))
}
