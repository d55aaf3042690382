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
		if !st.Import.Begun() {
			st.Import = nil // its obstacles count no more
		}
		return
	}
	if _, adopts := s.(plan.MarkRunning); adopts && !st.Import.Begun() {
		st.Import = nil // somebody has wiped the record of an import, and the cluster holds data
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
		i.Method = api.ImportJoin
		if s.WriteStop != nil {
			i.Method, i.WriteStop = api.ImportCopy, s.WriteStop
			st.Phase = api.ClusterPhaseCreating // the first member comes after the commit
			break
		}
		st.Phase = api.ClusterPhaseRunning
	case plan.CommitImport:
		i.CommitDate = now
	case plan.StopWrites:
		stopAt(i, s.Fence, now)
	case plan.RecordStop:
		stopAt(i, o.Import.Fence, now)
		i.WriteStop.Revision = s.Revision
	case plan.FinishImport:
		i.CompletionDate = now
		measureStop(i.WriteStop, o.Now)
	}
	if o.StopLapsed() {
		i.WriteStop.Lapsed = true
	}
	switch i.Obstacles = nil; {
	case i.CompletionDate != "":
		i.Phase = api.ImportCompleted
	case i.Copies():
		i.Phase = copyPhase(o, i, s)
	case i.CommitDate != "":
		i.Phase = api.ImportMoving
	case o.Ending && i.Begun():
		i.Phase = api.ImportTakingBack
	case i.Begun() && idles(s, plan.ImportJoined):
		i.Phase = api.ImportJoined
	case i.Begun():
		i.Phase = api.ImportJoining
	default:
		i.Phase, i.Obstacles = api.ImportChecking, o.Import.Obstacles
		st.Phase = api.ClusterPhaseCreating
	}
}

// copyPhase is the phase of a copy that has begun.
func copyPhase(o *plan.Observation, i *api.ImportStatus, s plan.Step) api.ImportPhase {
	switch {
	case o.Ending && o.Status.Phase != api.ClusterPhaseRunning:
		return api.ImportTakingBack
	case i.CommitDate != "":
		return api.ImportCopying
	case i.Phase == api.ImportPrepared || idles(s, plan.ImportPrepared):
		return api.ImportPrepared
	}
	return api.ImportChecking
}

// stopAt records when writes stop, unless that is on record.
func stopAt(i *api.ImportStatus, fence etcd.Alarm, now string) {
	if i.WriteStop == nil {
		i.WriteStop = &api.ImportWriteStop{}
	}
	if i.WriteStop.BeginDate == "" {
		i.WriteStop.BeginDate, i.WriteStop.AlarmID = now, etcd.FormatID(fence.MemberID)
	}
}

// measureStop records how long nobody could write. The record of the begin is older than the stop.
func measureStop(w *api.ImportWriteStop, now time.Time) {
	if w == nil {
		return
	}
	if began, err := time.Parse(time.RFC3339, w.BeginDate); err == nil {
		w.Seconds = int64(now.Sub(began).Round(time.Second) / time.Second)
	}
}

// idles reports whether there is nothing to do for this reason.
func idles(s plan.Step, why plan.ReasonKind) bool {
	idle, ok := s.(plan.Idle)
	return ok && idle.Why.Kind == why
}

// importReason says what an import waits for, if a person has to do something.
func importReason(o *plan.Observation, s plan.Step) plan.Reason {
	idle, ok := s.(plan.Idle)
	if !ok || !o.Importing() {
		return plan.Reason{}
	}
	switch idle.Why.Kind {
	case plan.ImportHeld, plan.ImportJoined, plan.ImportPrepared:
		return idle.Why
	}
	return plan.Reason{}
}

// ignoredImport says that an import can't begin any more, because the cluster holds data of its own.
func ignoredImport(o *plan.Observation) plan.Reason {
	if o.Spec.ImportFrom == nil || o.Importing() || o.Status.Import.Begun() || o.Status.Phase != api.ClusterPhaseRunning ||
		o.Source != nil || o.SourceUnreadable != "" || o.Status.RestoredFrom != nil {
		return plan.Reason{}
	}
	return plan.Reason{Detail: "spec.importFrom has no effect, because the cluster already holds data of its own, and the field counts at the creation only: " +
		"remove it; to import an etcd, create another EtcdCluster with it"}
}

// importing says what an import does; "" without one.
func importing(st *api.ClusterStatus, o *plan.Observation) string {
	switch {
	case !o.Importing() || st.Import == nil:
		return ""
	case st.Reason != "":
		return st.Reason
	case st.Import.Phase == api.ImportCopying && st.Import.WriteStop != nil && st.Import.WriteStop.BeginDate != "":
		return "nobody can write since " + st.Import.WriteStop.BeginDate + ": the first member gets the data of the etcd to copy"
	case st.Import.Phase == api.ImportCopying:
		return "the pod of the first member is starting, and writes stop when it waits for the data"
	case st.Import.Phase == api.ImportMoving:
		return "the former members of the imported etcd are leaving"
	case st.Import.Phase == api.ImportChecking && o.Import.Comparing:
		return "the operator compares the data of all members of the etcd to import, and has found nothing else in the way: an edit of the EtcdCluster makes it begin again"
	case st.Import.Phase == api.ImportChecking:
		return "the operator looks at the etcd to import"
	}
	return "members join the imported etcd"
}
