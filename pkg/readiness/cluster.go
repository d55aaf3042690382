// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Cluster is what the verdict about an EtcdCluster depends on.
type Cluster struct {
	// Status is complete but for the three conditions, which are as they were before.
	Status *api.ClusterStatus
	// Size is that of the spec.
	Size int
	// Blocked is the CamelCase reason why only a person can help; "" if there is none.
	// BlockedBy explains it.
	Blocked, BlockedBy string
	// Waiting is what the operator has waited for longer than usual; "" if nothing.
	Waiting string
	// Behind reports whether a running member differs from the spec, or an edit of the
	// spec has no effect yet.
	Behind bool
	// Restoring reports whether the first member starts from a backup.
	Restoring bool
	// Importing is what the import of a running etcd does; "" without one.
	Importing string
	// Sick are the members that are not healthy, with their problems.
	Sick []string
	// Exhausted reports whether Waiting or a member's problem has lasted for Patience.
	Exhausted bool
	// Settled reports whether the operator has nothing to do.
	Settled bool
	// Edited reports whether the operator sees this generation for the first time.
	Edited bool
}

// Of returns the verdict about an EtcdCluster.
func (c Cluster) Of() Verdict {
	st := c.Status
	available := st.Condition(api.ClusterConditionAvailable)
	trouble := strings.Join(c.Sick, "; ")
	switch {
	case c.Blocked != "":
		return stalled(c.Blocked, c.BlockedBy)
	case st.ControlPaused && (c.Behind || available.Status != corev1.ConditionTrue || !c.whole()):
		return stalled("Paused", "spec.paused is true: the operator does not bring the cluster to its spec")
	case st.ControlPaused:
		return ready("Paused", "the cluster is as specified and serves; spec.paused is true, so the operator changes nothing")
	case c.Exhausted && c.Waiting != "":
		return stalled("NoProgress", c.Waiting)
	case c.Exhausted:
		return stalled("MemberUnhealthy", trouble)
	case c.Restoring:
		return reconciling("Restoring", st.Reason)
	case c.Importing != "":
		return reconciling("Importing", c.Importing)
	case available.Status != corev1.ConditionTrue:
		return reconciling(CamelCase(available.Reason), available.Message)
	case c.Waiting != "":
		return reconciling("Waiting", c.Waiting)
	}
	for _, t := range []api.ClusterConditionType{
		api.ClusterConditionRecovering, api.ClusterConditionScaling, api.ClusterConditionUpgrading, api.ClusterConditionUpdating,
	} {
		if work := st.Condition(t); work.Status == corev1.ConditionTrue {
			return reconciling(string(t), work.Message)
		}
	}
	switch {
	case trouble != "":
		return reconciling("MemberUnhealthy", trouble)
	case len(st.Members.Unready) > 0:
		return reconciling("MemberUnready", "not ready: "+strings.Join(st.Members.Unready, ", "))
	case c.Settled:
		return ready("AsSpecified", fmt.Sprintf("%d of %d members are ready, and the cluster is as specified", st.ReadyMembers, c.Size))
	case !c.Edited && st.Condition(api.ClusterConditionReady).Status == corev1.ConditionTrue:
		// The operator corrects a detail, such as a label, and clients do not notice.
		return Verdict{api.ConditionReady, "AsSpecified", st.Condition(api.ClusterConditionReady).Message}
	}
	return reconciling("Progressing", "the operator brings the cluster to its spec")
}

// whole reports whether the members are as many as the spec says, and ready.
func (c Cluster) whole() bool {
	return c.Status.Size == c.Size && c.Status.ReadyMembers == c.Size && len(c.Status.Members.Unready) == 0 && len(c.Sick) == 0
}
