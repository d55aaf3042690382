// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// setImport sets the state of an import.
func setImport(st *api.ClusterStatus, o *plan.Observation, s plan.Step) {
	if !o.Importing() {
		return
	}
	if st.Import == nil {
		st.Import = &api.ImportStatus{}
	}
	i, now := st.Import, o.Now.UTC().Format(time.RFC3339)
	switch s := s.(type) {
	case plan.BeginImport:
		i.ClusterID, i.Members = etcd.FormatID(s.ClusterID), nil
		for _, m := range s.Members {
			i.Members = append(i.Members, api.ImportedMember{ID: etcd.FormatID(m.ID), Name: m.Name})
		}
		st.Phase = api.ClusterPhaseRunning
	case plan.CommitImport:
		i.CommitDate = now
	case plan.FinishImport:
		i.CompletionDate = now
	}
	switch i.Obstacles = nil; {
	case i.CompletionDate != "":
		i.Phase = api.ImportCompleted
	case i.CommitDate != "":
		i.Phase = api.ImportMoving
	case o.Ending && i.Begun():
		i.Phase = api.ImportTakingBack
	case i.Begun() && isJoined(s):
		i.Phase = api.ImportJoined
	case i.Begun():
		i.Phase = api.ImportJoining
	default:
		i.Phase, i.Obstacles = api.ImportChecking, o.Import.Obstacles
		st.Phase = api.ClusterPhaseCreating
	}
}

// isJoined reports whether the import waits for the user's word.
func isJoined(s plan.Step) bool {
	idle, ok := s.(plan.Idle)
	return ok && idle.Why.Kind == plan.ImportJoined
}

// importReason says what an import waits for, if a person has to do something.
func importReason(o *plan.Observation, s plan.Step) plan.Reason {
	if idle, ok := s.(plan.Idle); ok && (idle.Why.Kind == plan.ImportHeld || idle.Why.Kind == plan.ImportJoined) && o.Importing() {
		return idle.Why
	}
	return plan.Reason{}
}

// importing says what an import does; "" without one.
func importing(st *api.ClusterStatus, o *plan.Observation) string {
	switch {
	case !o.Importing() || st.Import == nil:
		return ""
	case st.Reason != "":
		return st.Reason
	case st.Import.Phase == api.ImportMoving:
		return "the former members of the imported etcd are leaving"
	case st.Import.Phase == api.ImportChecking:
		return "the operator looks at the etcd to import"
	}
	return "members join the imported etcd"
}
