// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// recoveryPatience is how long a quorum is missing before the status lists the ways out:
// elections and restarts take less.
const recoveryPatience = 10 * time.Second

// Recovery is what the operator knows for a cluster that has lost its quorum.
type Recovery struct {
	// Chosen is the way out that a person asks for; "": none.
	Chosen string
	// LostSince is when the operator first saw no quorum; zero with one.
	LostSince time.Time
	// Backups are the EtcdBackups of the cluster. Unread says why they, or the EtcdRestore,
	// can't be read; "" if they can.
	Backups []api.EtcdBackup
	Unread  string
	// NotServing are the states of members that run and serve no clients, by their pods.
	NotServing map[string]etcd.Status
	// LogEnds are the ends of the logs that containers serve, by the pods of the members. If a container
	// does not answer, it is the last one that is known: without a leader, no log grows.
	LogEnds map[string]MemberLogEnd
	// Restore is the EtcdRestore of the cluster's name, if a way is chosen or the mode is
	// Automatic; nil: there is none.
	Restore *api.EtcdRestore
	// WatchedSince is since when this operator has seen no quorum and the mode Automatic; zero
	// otherwise.
	WatchedSince time.Time
	// LookedAt is when this operator last saw no quorum before. LostAgain is when it saw none after a
	// time without looks, or when a quorum may last have served unseen. Both are zero otherwise.
	LookedAt, LostAgain time.Time
	// Confirmed is true if the API server itself shows no more pods and volumes than the
	// observation, and the same EtcdCluster. Unconfirmed says why not; both are zero if nobody
	// asked.
	Confirmed   bool
	Unconfirmed string
}

// MemberLogEnd is the end of the log of a member.
type MemberLogEnd struct {
	Member uint64
	End    recovery.LogEnd
}

// QuorumLost reports whether a cluster that has served is without a quorum for so long that the
// status lists the ways out.
func (o *Observation) QuorumLost() bool {
	if o.Quorum || o.Importing() || o.Ending || len(o.Pods) > 0 && o.Blind != "" {
		return false
	}
	since := o.Recovery.LostSince
	return o.Status.Phase == api.ClusterPhaseFailed ||
		o.Status.Phase == api.ClusterPhaseRunning && !since.IsZero() && o.Now.Sub(since) >= recoveryPatience
}

// Left is what is left of a cluster without a quorum.
func (o *Observation) Left() *recovery.Report {
	facts := recovery.Facts{Record: o.Record, Backups: o.Recovery.Backups}
	if from := o.Status.RestoredFrom; from != nil {
		facts.RestoredFrom = from.Key
	}
	if st := o.Status.Recovery; st != nil {
		facts.LastRevision = st.LastRevision
	}
	for _, m := range o.Members {
		name := m.PodName
		if name == "" {
			name = m.Name
		}
		facts.Members = append(facts.Members, o.memberLeft(name, etcd.FormatID(m.ID), m.Learner, m.Status))
	}
	if len(o.Members) == 0 && o.Record != nil {
		for _, m := range o.Record.Members {
			if !m.Removing {
				facts.Members = append(facts.Members, o.memberLeft(m.Name, m.ID, o.Status.IsLearner(m.ID), nil))
			}
		}
	}
	return recovery.Of(facts)
}

// memberLeft is what is known of a member. If it does not answer, its metrics may say what it holds, unless the
// pod now runs another member.
func (o *Observation) memberLeft(name, id string, learner bool, answer *etcd.Status) recovery.Member {
	m := recovery.Member{Missing: recovery.Missing{Name: name, MayReturn: o.mayReturn(name)}, Learner: learner, Status: answer}
	if st, ok := o.Recovery.NotServing[name]; ok && answer == nil && etcd.FormatID(st.MemberID) == id {
		m.Status, m.NotServing = &st, true
	}
	// A log has all entries that the member has applied: an end before them is old.
	if log, ok := o.Recovery.LogEnds[name]; ok && etcd.FormatID(log.Member) == id && (m.Status == nil || m.Status.RaftApplied <= log.End.Index) {
		m.LogEnd = &log.End
	}
	return m
}

// mayReturn reports whether a member that does not answer may come back with its data.
func (o *Observation) mayReturn(name string) bool {
	p, v := o.Pod(name), o.Volume(name)
	switch {
	case p != nil && p.Dataless, v != nil && v.Lost && (p == nil || !p.Running):
		return false
	case p != nil && v == nil && p.Claimed && !p.Started:
		return false // it waits for a volume that is gone
	case p != nil && !p.Finished && !p.Deleting:
		return true
	}
	return v != nil && !v.Deleting
}

// mayServe is how many of the voters run, as far as they or Kubernetes say.
func (o *Observation) mayServe() (running, voters int) {
	if len(o.Members) > 0 {
		return Count(o.Voters(), func(m MemberState) bool { return m.Status != nil || m.Unreached() }), o.knownVoters()
	}
	for _, p := range o.Pods {
		if p.Ready && !p.Deleting {
			running++
		}
	}
	return running, o.knownVoters()
}

// knownVoters is how many members have a vote. If no member answers the operator, those on record count.
func (o *Observation) knownVoters() int {
	if len(o.Members) > 0 {
		return len(o.Voters())
	}
	recorded := o.Status
	recorded.Record = o.Record
	return max(recorded.RecordedVoters(), 1)
}

// FollowedChoice returns how far the way out is that a person or the automatic recovery has chosen,
// and what to do next for it. Both are nil without one. The status must be written before the step.
func (o *Observation) FollowedChoice() (*api.RecoveryChoice, Step) {
	if o.Recovery.Chosen != "" {
		return o.follow(o.Recovery.Chosen, false)
	}
	value := ""
	if c := o.automaticChoice(); c != nil {
		value = c.Value
	} else if _, value = o.Automatic(); value == "" {
		return nil, nil
	}
	c, s := o.follow(value, true)
	if c == nil || c.Phase == api.RecoveryRefused || o.Quorum {
		return nil, nil // without a person, nobody needs to know
	}
	automatic := *c
	automatic.Automatic = true
	return &automatic, s
}

// follow returns how far a chosen way out is, and what to do next for it.
func (o *Observation) follow(value string, automatic bool) (*api.RecoveryChoice, Step) {
	old := &api.RecoveryChoice{}
	if st := o.Status.Recovery; st != nil && st.Choice != nil && st.Choice.Value == value && st.Choice.Automatic == automatic {
		old = st.Choice
	}
	kept := old
	if old.Value == "" {
		kept = nil
	}
	begun := o.Status.Phase == api.ClusterPhaseRunning || o.Status.Phase == api.ClusterPhaseFailed
	switch {
	case old.Phase == api.RecoveryFailed:
		return old, nil
	case o.Ending:
		return kept, nil
	case o.Quorum && begun:
		return failedChoice(value, old, "the cluster has a quorum, and is unchanged"), nil
	case !o.Quorum && begun && len(o.Pods) > 0 && o.Blind != "" && old.StartDate == "":
		return refusedChoice(value, "the operator can't ask the members: "+o.Blind), nil
	case !o.QuorumLost():
		return kept, nil
	case o.Spec.Paused:
		return refusedChoice(value, "spec.paused is true: set it to false"), nil
	case o.Recovery.Unread != "":
		return heldChoice(value, old, o.Recovery.Unread), nil
	}
	if o.lostSince(old) {
		return failedChoice(value, old, "a quorum may have been back since the choice, and taken writes: no operator has looked for some time, or enough members were ready and did not answer the operator, or the clocks of the operators differ; the cluster is unchanged"), nil
	}
	if old.Automatic {
		if why := o.automaticStop(); why != "" {
			return failedChoice(value, old, why), nil
		}
	}
	if old.StartDate != "" {
		switch news, unknown, step := o.surpassed(old); {
		case news != "":
			return failedChoice(value, old, news), nil
		case unknown != "":
			return waitingChoice(old, unknown), step
		}
	}
	c, step := o.proceed(value, old)
	if why := o.choiceHeld(); why != "" && (step != nil || old.StartDate == "") {
		return heldChoice(value, old, why), nil
	}
	return c, step
}

// proceed continues a choice, or begins it.
func (o *Observation) proceed(value string, old *api.RecoveryChoice) (*api.RecoveryChoice, Step) {
	switch old.Phase {
	case api.RecoveryBackingUp:
		return o.awaitSurvivorBackup(old)
	case api.RecoveryRestoring:
		return o.awaitRestore(old)
	}
	return o.begin(value)
}

// choiceHeld says why a rule that comes before followChoice keeps the operator from any step of a choice; "" if
// none does.
func (o *Observation) choiceHeld() string {
	_, contradiction := o.Contradiction()
	switch {
	case o.Invalid != "":
		return "the spec is invalid: " + o.Invalid
	case contradiction != "":
		return contradiction
	case o.PeerService.Taken:
		return peerServiceTaken(o.PeerService)
	}
	return ""
}

// lostSince reports whether the loss counts from after the begin of a choice: as this operator has
// seen it, or as another one has recorded it. StartDate lacks fractions of a second, and clocks
// differ. If the begin lies in the future, another clock has measured it.
func (o *Observation) lostSince(c *api.RecoveryChoice) bool {
	begun, err := time.Parse(time.RFC3339, c.StartDate)
	if err != nil {
		return false
	}
	recorded, err := time.Parse(time.RFC3339, o.Status.Recovery.LostDate) // it has the choice
	again := o.Recovery.LostAgain
	return again.Sub(begun) > time.Second || !again.IsZero() && begun.Sub(o.Now) > time.Second || err == nil && recorded.Sub(begun) > lookGap/2
}

// begin checks a way out, and takes the first step of it.
func (o *Observation) begin(value string) (*api.RecoveryChoice, Step) {
	way, err := api.ParseChosenWay(value)
	running, voters := o.mayServe()
	switch {
	case err != nil:
		return refusedChoice(value, err.Error()), nil
	case running >= etcd.Quorum(voters):
		return refusedChoice(value, fmt.Sprintf("%d of %d voting members run: wait until they have elected a leader, or find out why they do not", running, voters)), nil
	case restoreInTheWay(o.Recovery.Restore):
		return refusedChoice(value, fmt.Sprintf("a restore is under way (%s): wait for it, or delete the EtcdRestore %s", o.Recovery.Restore.Status.Phase, o.Names.Cluster)), nil
	case way.Backup != "":
		return o.beginFromBackup(value, way.Backup)
	}
	return o.beginFromSurvivor(value, way)
}

func refusedChoice(value, why string) *api.RecoveryChoice {
	return &api.RecoveryChoice{Value: value, Phase: api.RecoveryRefused, Reason: why}
}

// failedChoice ends a choice for good: another loss of the quorum must not revive it.
func failedChoice(value string, old *api.RecoveryChoice, why string) *api.RecoveryChoice {
	c := *old
	c.Value, c.Phase, c.Reason = value, api.RecoveryFailed, why+"; to try once more, remove the annotation "+api.RecoverAnnotation+" and set it again"
	if old.Automatic {
		c.Reason = why + "; the operator does not try again by itself: choose a way out with the annotation " + api.RecoverAnnotation
	}
	return &c
}

// heldChoice is a choice for which the operator can do nothing now.
func heldChoice(value string, old *api.RecoveryChoice, why string) *api.RecoveryChoice {
	if old.StartDate != "" {
		return waitingChoice(old, why)
	}
	return refusedChoice(value, why)
}

func waitingChoice(old *api.RecoveryChoice, why string) *api.RecoveryChoice {
	c := *old
	c.Reason = why
	return &c
}

// beginFromBackup checks the chosen backup, and commits to it.
func (o *Observation) beginFromBackup(value, name string) (*api.RecoveryChoice, Step) {
	left := o.Left()
	i := slices.IndexFunc(left.Backups, func(b recovery.Backup) bool { return b.Name == name })
	if i < 0 {
		var names []string
		for _, b := range left.Backups {
			names = append(names, b.Name)
		}
		return refusedChoice(value, fmt.Sprintf("no EtcdBackup %s of this cluster has a backup; those that have one: %s", name, listed(names))), nil
	}
	if why := left.Backups[i].Unfit; why != "" {
		return refusedChoice(value, fmt.Sprintf("the backup of %s cannot be used: %s", name, why)), nil
	}
	c := &api.RecoveryChoice{
		Value: value, Phase: api.RecoveryRestoring, StartDate: o.Now.UTC().Format(time.RFC3339),
		Revision: left.Backups[i].Revision, Backup: name, Message: left.RestoredFrom(left.Backups[i]),
	}
	return o.awaitRestore(c)
}

// awaitRestore has the restore operator replace the cluster. The status has the choice before
// the EtcdRestore exists.
func (o *Observation) awaitRestore(c *api.RecoveryChoice) (*api.RecoveryChoice, Step) {
	r := o.Recovery.Restore
	if r != nil && r.Annotations[api.RecoveryAnnotation] == c.StartDate {
		seen := *c
		seen.RestoreUID = r.UID
		c = &seen
	}
	switch {
	case r == nil && c.RestoreUID != "":
		// It goes only if it has touched nothing, or when its cluster is back.
		return failedChoice(c.Value, c, "somebody has deleted the EtcdRestore "+o.Names.Cluster+", and so has taken the choice back; the cluster is unchanged"), nil
	case r == nil:
		b := o.backup(c.Backup)
		if b == nil {
			return failedChoice(c.Value, c, "the EtcdBackup "+c.Backup+" is gone; the cluster is unchanged"), nil
		}
		s := RestoreChosen{From: c.Backup, Begun: c.StartDate}
		if c.Revision > b.Status.EtcdRevision {
			s.Revision = c.Revision
		}
		if v, err := etcd.ParseVersion(o.Spec.EffectiveVersion()); err == nil && v.HasBumpRevision() {
			last := int64(0)
			if o.Record != nil {
				last = o.Record.Revision
			}
			s.Bump = recovery.BumpFor(c.Revision, last, o.Status.RestoredFrom)
		}
		return waitingChoice(c, "the EtcdRestore "+o.Names.Cluster+" is to restore the EtcdBackup "+c.Backup), s
	case r.Annotations[api.RecoveryAnnotation] == c.StartDate && (r.Status.Phase == api.RestorePhaseInvalid || r.Status.Phase == api.RestorePhaseFailed):
		return failedChoice(c.Value, c, fmt.Sprintf("the EtcdRestore %s is %s, and the cluster is unchanged: %s", r.Name, r.Status.Phase, r.Status.Reason)), nil
	case r.Annotations[api.RecoveryAnnotation] == c.StartDate && r.Status.Phase == api.RestorePhaseNone:
		return waitingChoice(c, "the restore operator has not seen the EtcdRestore "+r.Name), nil
	case r.Annotations[api.RecoveryAnnotation] == c.StartDate:
		return waitingChoice(c, fmt.Sprintf("the EtcdRestore %s is %s: %s", r.Name, r.Status.Phase, r.Status.Reason)), nil
	case restoreInTheWay(r):
		return failedChoice(c.Value, c, fmt.Sprintf("another restore is under way (%s)", r.Status.Phase)), nil
	case r.DeletionTimestamp != nil:
		return waitingChoice(c, "waiting for the end of the EtcdRestore of an earlier restore"), nil
	}
	return waitingChoice(c, "the EtcdRestore of an earlier restore is to be deleted"), DeleteRestore{Name: r.Name, UID: r.UID}
}

// restoreInTheWay reports whether an EtcdRestore is neither over, nor of an earlier choice that
// has touched nothing.
func restoreInTheWay(r *api.EtcdRestore) bool {
	if r == nil || r.Status.Succeeded {
		return false
	}
	return r.Annotations[api.RecoveryAnnotation] == "" || committed(r)
}

// committedTo reports whether the restore operator has committed to a choice.
func (o *Observation) committedTo(c *api.RecoveryChoice) bool {
	r := o.Recovery.Restore
	return r != nil && r.Annotations[api.RecoveryAnnotation] == c.StartDate && committed(r)
}

// committed reports whether a restore has on record what it restores, and into what.
func committed(r *api.EtcdRestore) bool { return r.Status.Backup != nil && r.Status.Cluster != nil }

func (o *Observation) backup(name string) *api.EtcdBackup {
	i := slices.IndexFunc(o.Recovery.Backups, func(b api.EtcdBackup) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Recovery.Backups[i]
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// followChoice takes the way out that a person has chosen. While it waits, the next rules bring
// back pods on volumes: a survivor may be among them.
func followChoice(o *Observation) Step {
	if o.Quorum {
		return nil
	}
	_, step := o.FollowedChoice()
	return step
}
