// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery prints the ways out for a cluster that has lost its quorum, as far as a
// user of the plugin sees it. It asks nobody anything.
package recovery

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// Report is what is left of a cluster without a quorum, and the ways out.
type Report struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// NotAsked is why the plugin could not ask the members. The operator's report of ReportTime
	// counts then.
	NotAsked   string `json:"notAsked,omitempty"`
	ReportTime string `json:"reportTime,omitempty"`
	// Automatic is what the operator is about to do by itself, and Choice what it does now.
	Automatic *api.AutomaticRecovery `json:"automatic,omitempty"`
	Choice    *api.RecoveryChoice    `json:"choice,omitempty"`
	recovery.Report

	chosen []string
}

// Taken returns the way out that the operator takes, or is about to take; "" if it takes none.
func (r *Report) Taken() string {
	switch {
	case r.Choice != nil && (r.Choice.Phase == api.RecoveryBackingUp || r.Choice.Phase == api.RecoveryRestoring):
		return r.Choice.Value
	case r.Automatic != nil && r.Automatic.Phase == api.AutomaticWaiting:
		return r.Automatic.Value
	}
	return ""
}

// ErrQuorum means that the cluster has a quorum.
var ErrQuorum = errors.New("the cluster has a quorum, so there is nothing to recover")

// Reported reports whether the operator, which asks the members itself, lists the ways out of a lost quorum.
// A choice that came too late stays in the status with a quorum.
func Reported(c *observe.Cluster) bool {
	st := c.Object.Status.Recovery
	return st != nil && st.LostDate != ""
}

// Of lists the ways out. It returns ErrQuorum if a quorum serves. volumes are the claims of
// the cluster's members, by name; nil if the user may not see them.
func Of(c *observe.Cluster, volumes map[string]corev1.PersistentVolumeClaimPhase) (*Report, error) {
	if c.Quorum() {
		return nil, ErrQuorum
	}
	s := summary.Of(c, nil)
	facts := recovery.Facts{Record: c.Object.Status.Record, Backups: c.Backups, Members: members(c, s)}
	if from := c.Object.Status.RestoredFrom; from != nil {
		facts.RestoredFrom = from.Key
	}
	if st := c.Object.Status.Recovery; st != nil {
		facts.LastRevision = st.LastRevision
	}
	for i := range facts.Members {
		m := &facts.Members[i]
		if m.Status == nil {
			m.Status, m.NotServing = learned(c, m.Name)
		}
		m.Volume = volumes[m.Name]
		m.MayReturn = mayReturn(c, m.Missing, volumes == nil)
	}
	report := &Report{Name: s.Name, Namespace: s.Namespace, Report: *recovery.Of(facts), chosen: c.Chosen}
	if st := c.Object.Status.Recovery; st != nil {
		report.Automatic, report.Choice = st.Automatic, st.Choice
		if c.NotAsked != nil {
			report.NotAsked, report.ReportTime = c.NotAsked.Error(), st.LastUpdateTime
		}
	}
	return report, nil
}

// learned is what the operator has learned of a survivor: by its metrics if it answers no clients, or by its
// answer if the plugin can ask nobody. It is nil if the operator has learned nothing.
func learned(c *observe.Cluster, member string) (status *etcd.Status, notServing bool) {
	st := c.Object.Status.Recovery
	if st == nil {
		return nil, false
	}
	for _, w := range st.Ways {
		if w.Way == api.RecoverySurvivor && w.Member == member && (w.NotServing || c.NotAsked != nil) {
			return &etcd.Status{ClusterID: recordedID(c), Revision: w.Revision, RaftTerm: uint64(w.RaftTerm), RaftIndex: uint64(w.RaftIndex), RaftApplied: uint64(w.RaftIndex)}, w.NotServing // from a status of etcd
		}
	}
	return nil, false
}

// recordedID is the cluster ID of the survivors that the operator lists; 0 if none is recorded.
func recordedID(c *observe.Cluster) uint64 {
	if c.Object.Status.Record == nil {
		return 0
	}
	id, _ := strconv.ParseUint(c.Object.Status.Record.ClusterID, 16, 64)
	return id
}

// members are those of the membership. If no member answers, those on record count.
func members(c *observe.Cluster, s *summary.Summary) []recovery.Member {
	var list []recovery.Member
	seen := map[string]summary.Member{}
	for _, m := range s.Members {
		seen[m.Name] = m
		if len(c.Members) == 0 || m.ID == "" {
			continue
		}
		entry := recovery.Member{Missing: recovery.Missing{Name: m.Name, Problem: m.Problem, Node: m.Node}, Learner: !m.Votes()}
		entry.Status = answer(c, m.ID)
		list = append(list, entry)
	}
	if rec := c.Object.Status.Record; len(c.Members) == 0 && rec != nil {
		for _, m := range rec.Members {
			p, known := seen[m.Name]
			if !known {
				p.Problem = "it has no pod"
			}
			entry := recovery.Member{Missing: recovery.Missing{Name: m.Name, Problem: p.Problem, Node: p.Node}, Learner: c.Object.Status.IsLearner(m.ID)}
			entry.Status = answer(c, m.ID)
			list = append(list, entry)
		}
	}
	return list
}

// answer returns what a member has answered; nil if it has not.
func answer(c *observe.Cluster, id string) *etcd.Status {
	for i := range c.Answers {
		if a := &c.Answers[i]; a.Err == nil && etcd.FormatID(a.Status.MemberID) == id {
			return &a.Status
		}
	}
	return nil
}

// mayReturn reports whether a missing member may come back with its data.
func mayReturn(c *observe.Cluster, m recovery.Missing, unseen bool) bool {
	if pod := c.Pod(m.Name); pod != nil {
		p := manifest.PodStateOf(pod)
		if p.Dataless || !p.Running && (m.Volume == corev1.ClaimLost || m.Volume == corev1.ClaimPending) {
			return false
		}
		if !p.Finished && !p.Deleting {
			return true
		}
	}
	return m.Volume == corev1.ClaimBound || unseen && c.Object.Spec.Persistent()
}
