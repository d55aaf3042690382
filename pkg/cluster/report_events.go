// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// stuckAfter is how long a pod may have a problem before an event reports it: many problems
// pass.
const stuckAfter = 10 * time.Second

// unhealthyAfter is how long a member may be unhealthy before an event reports it. A restart,
// as in an upgrade, takes less.
const unhealthyAfter = 30 * time.Second

// notices sends events on the EtcdCluster and writes the log. Reasons and texts from v0.9.4
// stay.
type notices struct {
	notice.Board[*api.EtcdCluster]

	stuck  map[string]stuckPod
	warned int64 // generation of the last warnings
	// unhealthy are the reported unhealthy members, with their names.
	unhealthy map[uint64]string
	// refused is the API server's last refusal, by request.
	refused map[string]string
	// reason is that of the status to write; toldReason is the kind of the last written one.
	reason     plan.Reason
	toldReason plan.ReasonKind
}

// A stuckPod has had problems without a break since a time.
type stuckPod struct {
	since time.Time
	told  []string // kinds of problems
}

func (n *notices) memberAdded(name string) {
	n.Normal("New Member Added", "New member %s added to cluster", name)
}

func (n *notices) memberPromoted(s plan.PromoteMember) {
	n.Normal("Member Promoted", "Member %s is in sync and votes now", s.Name)
}

func (n *notices) memberRemoved(s plan.RemoveMember) {
	n.Normal("Member Removed", "Existing member %s removed from the cluster", s.Name)
}

func (n *notices) replacingMember(s plan.RemoveMember) {
	n.Normal("Replacing Dead Member", "The dead member %s is being replaced", s.Name)
}

func (n *notices) memberUpgraded(s plan.SetVersion) {
	if s.From == s.To {
		n.Normal("Member Updated", "Member %s is restarted on the image of version %s from another repository", s.Pod, s.To)
		return
	}
	if s.Previous == "" {
		n.Normal("Member Upgraded", "The new member %s gets version %s, because the image of version %s is unavailable", s.Pod, s.To, s.From)
		return
	}
	n.Normal("Member Upgraded", "Member %s upgraded from %s to %s", s.Pod, s.From, s.To)
}

func (n *notices) memberUpdated(s plan.RecyclePod) {
	n.Normal("Member Updated", "Member %s is recreated on its volume: %s", s.Name, s.Why)
}

func (n *notices) leaderMoved(s plan.MoveLeader) {
	n.Normal("Leader Moved", "Leadership moved from member %s to member %s", s.From, s.To)
}

func (n *notices) authEnabled(secret string) {
	n.Normal("Authentication Enabled", "etcd asks clients for a user. The operator logs in as the user in Secret %s", secret)
}

func (n *notices) authDisabled() {
	n.Normal("Authentication Disabled", "etcd no longer asks clients for a user, because spec.auth.enabled is false")
}

func (n *notices) passwordChanged(secret string) {
	n.Normal("Password Changed", "The operator's user of etcd has the new password in Secret %s", secret)
}

func (n *notices) serviceTaken(err error) { n.Warning("Service Taken", "%v", err) }

func (n *notices) budgetTaken(err error) { n.Warning("Disruption Budget Taken", "%v", err) }

func (n *notices) bridgeHeld(problem string) { n.Warning("Bridge Held", "%s", problem) }

// corrected reports the correction of what somebody else has edited.
func (n *notices) corrected(object, edited string) {
	n.Normal("Edit Undone", "%s was edited, and the operator undid the edit: %s", object, edited)
}

func (n *notices) podRefused(why string) {
	n.Warning("Pod Refused", "%s; the operator retries every %s", plan.Reason{Kind: plan.PodsRefused, Detail: why}, refusedPause)
}

// writeRefused reports the API server's refusal of a write, once for each reason.
func (n *notices) writeRefused(what string, err error, pause time.Duration) {
	if n.refused[what] != err.Error() {
		n.refused[what] = err.Error()
		n.Warning("Write Refused", "Kubernetes refuses to %s; the operator retries every %s: %v", what, pause, err)
	}
}

func (n *notices) passFails(s plan.Step, err error) {
	n.Warning("Reconcile Failing", "Failed repeatedly at: %s: %v", s, err)
}

// certificatesChanged reports changes of the certificates' state.
func (n *notices) certificatesChanged(old, st api.ClusterStatus) {
	before, now := old.Condition(api.ClusterConditionCertificatesValid), st.Condition(api.ClusterConditionCertificatesValid)
	switch {
	case now.Status == corev1.ConditionFalse && (before.Status != now.Status || before.Message != now.Message):
		n.Warning("Certificate Problem", "%s: %s", now.Reason, now.Message)
	case now.Status == corev1.ConditionTrue && before.Status == corev1.ConditionFalse:
		n.Normal("Certificates Valid", "The certificates are valid again")
	}
}

// look reports what an observation shows without a step: warnings about a spec, and stuck
// pods.
func (n *notices) look(o *plan.Observation) {
	if n.warned != n.Object.Generation {
		n.warned = n.Object.Generation
		for _, w := range api.Warnings(n.Object) {
			n.Warning("Spec Warning", "%s", w)
		}
	}
	current := map[string]stuckPod{}
	for _, p := range o.Pods {
		if p.Problem == "" || p.Deleting {
			continue
		}
		s, known := n.stuck[p.Name]
		if !known {
			s.since = o.Now
		}
		if o.Now.Sub(s.since) >= stuckAfter && !slices.Contains(s.told, p.ProblemKind) {
			s.told = append(s.told, p.ProblemKind)
			n.Warning("Member Stuck", "Pod %s makes no progress: %s", p.Name, p.Problem)
		}
		current[p.Name] = s
	}
	n.stuck = current
	n.lookAtMembers(o)
}

// lookAtMembers reports unhealthy members without another report: their pods have no problem,
// and the others have a quorum.
func (n *notices) lookAtMembers(o *plan.Observation) {
	if !o.Quorum {
		return
	}
	current := map[uint64]string{}
	for _, m := range o.Members {
		name, told := n.unhealthy[m.ID]
		switch {
		case m.Healthy() && told:
			n.Normal("Member Recovered", "Member %s is healthy again", name)
		case told:
			current[m.ID] = name
		case !m.Healthy() && !m.Foreign() && m.Joined() && m.Pod != nil && m.Pod.Problem == "" && !m.Pod.Deleting && o.Now.Sub(m.DownSince) >= unhealthyAfter:
			current[m.ID] = m.PodName
			n.Warning("Member Unhealthy", "Member %s has not been healthy for %s: %s", m.PodName, unhealthyAfter, problem(m, o))
		}
	}
	n.unhealthy = current
}

// statusChanged reports what begins and ends.
func (n *notices) statusChanged(old, st api.ClusterStatus) {
	if old.Phase != st.Phase {
		switch st.Phase {
		case api.ClusterPhaseCreating:
			if st.Import != nil {
				break // the events of the import follow
			}
			n.Normal("Bootstrapping", "Bootstrapping the cluster with member %s", st.Members.Unready[0])
		case api.ClusterPhaseRunning:
			if st.Import != nil && old.Phase == api.ClusterPhaseCreating {
				break
			}
			n.Normal("Bootstrapped", "The first member serves: the cluster is running")
		case api.ClusterPhaseFailed:
			n.Warning("Cluster Failed", "%s", st.Reason)
		}
	}
	n.certificatesChanged(old, st)
	if from := st.RestoredFrom; from != nil && (old.RestoredFrom == nil || *from != *old.RestoredFrom) {
		n.Normal("Restoring", "The first member starts on the backup %s", from.Key)
	}
	n.importChanged(old.Import, st.Import)
	n.recoveryChanged(old.Recovery, st.Recovery)
	n.reasonChanged(old.Reason, st.Reason)
	if old.ControlPaused != st.ControlPaused {
		if st.ControlPaused {
			n.Normal("Paused", "spec.paused is true: the operator leaves the cluster alone")
		} else {
			n.Normal("Resumed", "spec.paused is false: the operator manages the cluster again")
		}
	}
	n.availabilityChanged(old, st)
	n.updating(old, st)
	switch {
	case st.TargetVersion != "" && st.TargetVersion != old.TargetVersion:
		n.Normal("Upgrade Started", "Upgrading from %s to %s", st.CurrentVersion, st.TargetVersion)
	case st.TargetVersion == "" && old.TargetVersion != "" && st.CurrentVersion == old.TargetVersion:
		n.Normal("Upgrade Finished", "All members run %s", st.CurrentVersion)
	}
}

// importChanged reports the stages of an import.
func (n *notices) importChanged(old, st *api.ImportStatus) {
	if w := writeStopOf(st); w.BeginDate != "" && writeStopOf(old).BeginDate == "" {
		n.Normal("Writes Stopped", "The etcd to copy refuses all writes from now on, by the alarm CORRUPT of the ID %s. The expectation was %d s", w.AlarmID, w.ExpectedSeconds)
	}
	if st == nil || old != nil && old.Phase == st.Phase {
		return
	}
	switch st.Phase {
	case api.ImportPrepared:
		n.Normal("Import Prepared", "Nothing is in the way of the copy. Set spec.importFrom.commit to true to stop all writes for about %d s: %s", writeStopOf(st).ExpectedSeconds, writeStopOf(st).Expectation)
	case api.ImportCopying:
		n.Normal("Import Committed", "The first member starts. Writes stop when it waits for the data")
	case api.ImportJoining:
		if old == nil || old.Phase == api.ImportChecking {
			n.Normal("Import Begun", "Members join the etcd of ID %s, which has %d members", st.ClusterID, len(st.Members))
		}
	case api.ImportJoined:
		n.Normal("Import Joined", "The members have joined the imported etcd. Set spec.importFrom.commit to true to let its former members leave")
	case api.ImportMoving:
		n.Normal("Import Committed", "The former members of the imported etcd leave, one by one")
	case api.ImportCompleted:
		if w := writeStopOf(st); st.Copies() {
			n.Normal("Import Completed", "The cluster accepts writes after revision %d. Nobody could write for %d s, and the expectation was %d s. End the former etcd: it refuses writes, and answers reads with old data", w.Revision, w.Seconds, w.ExpectedSeconds)
			return
		}
		n.Normal("Import Completed", "All members of the etcd are those of the EtcdCluster: spec.importFrom can be removed")
	case api.ImportTakingBack:
		if st.Copies() {
			n.Normal("Import Taken Back", "The EtcdCluster is being deleted before it accepts writes: the etcd to copy accepts them")
			return
		}
		n.Normal("Import Taken Back", "The EtcdCluster is being deleted: its members leave the imported etcd")
	}
}

// writeStopOf is the write stop of an import; empty without one.
func writeStopOf(st *api.ImportStatus) api.ImportWriteStop {
	if st == nil || st.WriteStop == nil {
		return api.ImportWriteStop{}
	}
	return *st.WriteStop
}

// reasonChanged reports a new status.reason that needs an action. One standstill may have
// several texts.
func (n *notices) reasonChanged(old, text string) {
	before := n.toldReason
	n.toldReason = n.reason.Kind
	if text == old {
		return
	}
	switch n.reason.Kind {
	case plan.SpecRefused, plan.VersionRefused:
		n.Warning("Spec Refused", "%s", text)
	case plan.Standstill:
		if before != plan.Standstill {
			n.Warning("Standstill", "%s", text)
		}
	case plan.WrongImage:
		n.Warning("Wrong Image", "%s", text)
	case plan.VolumesDeleted:
		n.Warning("Volumes Deleted", "%s", text)
	case plan.StrangePods:
		n.Warning("Strange Pods", "%s", text)
	case plan.RestoreHeld:
		n.Warning("Restore Held", "%s", text)
	case plan.ImportHeld:
		n.Warning("Import Held", "%s", text)
	}
}

// availabilityChanged reports alarms, on which a quorum agrees, separately from lost quorums.
func (n *notices) availabilityChanged(old, st api.ClusterStatus) {
	was, is := old.Condition(api.ClusterConditionAvailable), st.Condition(api.ClusterConditionAvailable)
	alarm := func(c api.ClusterCondition) bool { return c.Reason == reasonNoSpace || c.Reason == reasonCorrupt }
	up := func(c api.ClusterCondition) bool { return c.Status == corev1.ConditionTrue || alarm(c) } // there is a quorum
	switch {
	case contradicts(is) && (is.Reason != was.Reason || is.Message != was.Message):
		n.Warning("Data Missing", "%s: %s", is.Reason, is.Message)
	case contradicts(is):
	case contradicts(was) && up(is):
		n.Normal("Data Accepted", "The cluster no longer contradicts what is on record: the operator manages it again")
	case is.Status == corev1.ConditionUnknown && was.Status != is.Status:
		n.Warning("Cannot Connect", "%s", is.Message)
	case was.Status == corev1.ConditionUnknown && up(is):
		n.Normal("Connected Again", "The operator can connect to the members again: a quorum serves")
	case is.Status == corev1.ConditionUnknown:
	case (up(was) || was.Status == corev1.ConditionUnknown) && !up(is):
		n.Warning("Quorum Lost", "%s: %s", is.Reason, is.Message)
	case !up(was) && up(is) && old.Phase == api.ClusterPhaseRunning && was.Reason != reasonImporting:
		n.Normal("Quorum Restored", "A quorum of members serves again")
	}
	switch {
	case alarm(is) && (is.Reason != was.Reason || is.Message != was.Message):
		n.Warning("Alarm Raised", "%s: %s", is.Reason, is.Message)
	case alarm(was) && is.Status == corev1.ConditionTrue:
		n.Normal("Alarm Cleared", "No alarm is left: the cluster takes all requests again")
	}
}

// contradicts reports whether Available is False because the cluster contradicts the record.
func contradicts(available api.ClusterCondition) bool {
	switch available.Reason {
	case plan.ReasonForgotten, plan.ReasonOtherID, plan.ReasonWentBack:
		return true
	}
	return false
}

// updating reports when members begin to follow an edit, when all do, and when they can't.
func (n *notices) updating(old, st api.ClusterStatus) {
	was, is := old.Condition(api.ClusterConditionUpdating), st.Condition(api.ClusterConditionUpdating)
	switch {
	case is.Reason == updateHeld: // an event reports the certificate
	case is.Status == corev1.ConditionFalse && is.Message != was.Message:
		n.Warning("Update Refused", "%s", is.Message)
	case is.Status == corev1.ConditionTrue && is.Reason == volumesGrowing && was.Status != corev1.ConditionTrue:
		n.Normal("Update Started", "The volumes follow the edited spec: %s", is.Message)
	case is.Status == corev1.ConditionTrue && was.Status != corev1.ConditionTrue:
		n.Normal("Update Started", "The members follow the edited spec one at a time: %s", is.Message)
	case is.Status == "" && was.Status == corev1.ConditionTrue:
		n.Normal("Update Finished", "All members follow the spec")
	}
}
