// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// statusAfter returns the status after an observation and its planned step.
func statusAfter(o *plan.Observation, s plan.Step, generation int64) api.ClusterStatus {
	st := *o.Status.DeepCopy()
	st.ObservedGeneration = generation
	st.ControlPaused = o.Spec.Paused
	if o.ClientService.Ok() {
		st.ServiceName, st.ClientPort = o.ClientService.Name, manifest.ClientPort
	}
	st.MinAvailable = o.Budget.MinAvailable
	st.BridgedServices = o.BridgedServices(s)
	st.Selector = selector(o)
	setPhase(&st, o, s)
	setImport(&st, o, s)
	why := statusReason(o, s, st.Phase)
	st.Reason = why.String()
	setMembers(&st, o, s)
	setMemberStatuses(&st, o)
	setVersions(&st, o)
	setRecord(&st, o, s)
	setRecovery(&st, o)
	setConditions(&st, o, s)
	setReady(&st, o, s, why)
	steady := st
	keepNumbers(&steady, o.Status.MemberStatuses)
	keepRecord(&steady, o.Status.Record, o.Now, o.Spec.RecoversAutomatically() && o.Quorum)
	if equality.Semantic.DeepEqual(steady, o.Status) {
		return steady
	}
	return st
}

func setPhase(st *api.ClusterStatus, o *plan.Observation, s plan.Step) {
	switch s.(type) {
	case plan.ChooseSeed:
		st.Phase = api.ClusterPhaseCreating
	case plan.MarkRunning:
		if v, ok := o.LowestVersion(); ok && st.Phase == api.ClusterPhaseCreating {
			st.InitialVersion = v.String()
		}
		st.Phase = api.ClusterPhaseRunning
	case plan.MarkFailed:
		st.Phase = api.ClusterPhaseFailed
	}
}

func setMembers(st *api.ClusterStatus, o *plan.Observation, s plan.Step) {
	if seed, ok := s.(plan.ChooseSeed); ok {
		st.Members = api.MembersStatus{Unready: []string{seed.Name}}
		st.RestoredFrom = manifest.RestoredFrom(seed.Source)
	}
	if st.Phase == api.ClusterPhaseCreating || st.Phase == api.ClusterPhaseNone {
		return // the seed's name stays on record
	}
	st.Members = api.MembersStatus{}
	for _, p := range o.Pods {
		if len(o.Members) > 0 && !o.IsMember(p.Name) {
			continue
		}
		if p.Ready && !p.Deleting {
			st.Members.Ready = append(st.Members.Ready, p.Name)
		} else {
			st.Members.Unready = append(st.Members.Unready, p.Name)
		}
	}
	for _, m := range o.Own() {
		if m.Pod == nil {
			st.Members.Unready = append(st.Members.Unready, m.PodName)
		}
	}
	slices.Sort(st.Members.Unready)
	st.ReadyMembers = len(st.Members.Ready)
	if len(o.Members) > 0 {
		st.Size = len(o.Members)
	}
	if len(o.Pods) == 0 && len(o.Members) == 0 && len(o.Volumes) == 0 {
		st.Size = 0
	}
}

func setVersions(st *api.ClusterStatus, o *plan.Observation) {
	st.LiteralTags = o.LiteralTags()
	if v, ok := o.LowestVersion(); ok {
		st.CurrentVersion = v.String()
	}
	if st.Phase == api.ClusterPhaseRunning && st.InitialVersion == "" {
		st.InitialVersion = o.Origin() // an earlier operator did not record it
	}
	switch {
	case o.Spec.Paused: // as it was
	case st.CurrentVersion != "" && o.Outdated() && o.CheckVersion() == nil && o.MislabelledTarget().IsZero():
		st.TargetVersion = o.Spec.EffectiveVersion()
	default:
		st.TargetVersion = ""
	}
}
