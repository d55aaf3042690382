// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// OfRestore returns the verdict about an EtcdRestore. needsPerson reports that the restore,
// in whatever phase, waits for something that only a person can do.
func OfRestore(st *api.RestoreStatus, needsPerson bool, now time.Time) Verdict {
	switch {
	case st.Phase == api.RestorePhaseSucceeded:
		return ready("Restored", "the cluster is back with all its members")
	case st.Phase == api.RestorePhaseInvalid:
		return stalled("SpecRefused", st.Reason)
	case st.Phase == api.RestorePhaseFailed:
		return stalled("RestoreFailed", st.Reason)
	case st.Phase == api.RestorePhaseRetrying && st.StartDate != nil && now.Sub(st.StartDate.Time) >= Patience:
		return stalled("CannotBegin", st.Reason)
	case needsPerson:
		return stalled(string(st.Phase)+"Blocked", st.Reason)
	case st.Phase == api.RestorePhaseRetrying:
		return reconciling("Retrying", st.Reason)
	}
	// status.reason shows the progress. It changes often, and the condition does not follow.
	switch st.Phase {
	case api.RestorePhaseStopping:
		return reconciling("StoppingCluster", "the operator stops the old cluster")
	case api.RestorePhaseCreating:
		return reconciling("CreatingCluster", "the operator creates the EtcdCluster")
	case api.RestorePhaseStarting:
		return reconciling("StartingFirstMember", "the first member fetches the backup and starts from it")
	case api.RestorePhaseGrowing:
		return reconciling("AddingMembers", "the first member serves, and the other members join")
	}
	return reconciling("VerifyingBackup", "the operator searches for the backup and reads it")
}
