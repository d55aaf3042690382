// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

const (
	// watchPatience is how long this operator itself must have seen no quorum before it
	// recovers automatically. The recorded time of the loss may be that of an earlier loss, which
	// ended while no operator ran, or of another clock.
	watchPatience = time.Minute
	// noticePeriod is how long the status announces a way out at least. A member that seems lost
	// for a moment then stops the recovery before it begins.
	noticePeriod = time.Minute
	// calmAfterRestore is how long a restored cluster must have served before an automatic
	// recovery. A loss within this time may have the cause of the one before.
	calmAfterRestore = time.Hour
)

// Automatic returns what the automatic recovery is about to do, and the way out that it takes
// now, in the form of the annotation. The first is nil if the mode is Manual, or if it has
// acted. The second is "" if it does not act now.
func (o *Observation) Automatic() (*api.AutomaticRecovery, string) {
	if !o.Spec.RecoversAutomatically() || !o.QuorumLost() {
		return nil, ""
	}
	announced := &api.AutomaticRecovery{}
	if st := o.Status.Recovery; st != nil && st.Automatic != nil {
		announced = st.Automatic
	}
	switch {
	case o.Recovery.Chosen != "" || announced.Phase == api.AutomaticYielded:
		return &api.AutomaticRecovery{Phase: api.AutomaticYielded, Message: "does not act: the annotation " + api.RecoverAnnotation + " has been set, so the operator leaves this loss of the quorum to a person"}, ""
	case o.automaticChoice() != nil:
		return nil, ""
	}
	if why := o.automaticObstacle(); why != "" {
		return blocked(why), ""
	}
	pick, why := o.Left().Within(o.bounds(), o.Recovery.Backups)
	if pick == nil {
		return blocked("no way out is within the bounds of spec.recovery: " + why), ""
	}
	value := pick.Way.String()
	if c, _ := o.begin(value); c.Phase != api.RecoveryBackingUp && c.Phase != api.RecoveryRestoring {
		return blocked(c.Reason), ""
	}
	same := announced.Phase == api.AutomaticWaiting && announced.Value == value
	due := o.automaticDue()
	if at, err := time.Parse(time.RFC3339, announced.Time); same && err == nil {
		due = latest(due, at)
	} else {
		due = latest(due, o.Now.Add(noticePeriod))
	}
	acts := same && !o.Now.Before(due)
	if acts && o.Recovery.Confirmed {
		return nil, value
	}
	at := due.UTC().Format(time.RFC3339)
	plan := &api.AutomaticRecovery{
		Phase: api.AutomaticWaiting, Value: value, Time: at,
		Message: fmt.Sprintf("recovers from %s at %s, unless members or a quorum return, a person chooses a way out, or spec.recovery.mode becomes Manual; %s", way(pick.Way), at, pick.Loses),
	}
	if acts && o.Recovery.Unconfirmed != "" {
		plan.Message = fmt.Sprintf("is about to recover from %s, and waits: %s", way(pick.Way), o.Recovery.Unconfirmed)
	}
	return plan, ""
}

func way(w api.ChosenWay) string {
	if w.Backup != "" {
		return "the newest backup of EtcdBackup " + w.Backup
	}
	return "the survivor " + w.Member
}

func blocked(why string) *api.AutomaticRecovery {
	return &api.AutomaticRecovery{
		Phase:   api.AutomaticBlocked,
		Message: "does not act: " + why + ". A person can choose a way out with the annotation " + api.RecoverAnnotation,
	}
}

// automaticChoice is the choice of the automatic recovery on record; nil if there is none.
func (o *Observation) automaticChoice() *api.RecoveryChoice {
	if st := o.Status.Recovery; st != nil && st.Choice != nil && st.Choice.Automatic {
		return st.Choice
	}
	return nil
}

// AutomaticDue reports whether the automatic recovery acts as soon as the API server confirms the
// observation.
func (o *Observation) AutomaticDue() bool {
	asked := *o
	asked.Recovery.Confirmed = true
	_, value := asked.Automatic()
	return value != ""
}

// automaticDue is when the patience ends.
func (o *Observation) automaticDue() time.Time {
	return latest(o.LostDate().Add(o.Spec.Recovery.Patience()), o.Recovery.WatchedSince.Add(watchPatience))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lookGap is the longest time without a look at a lost quorum. After a longer one, the quorum may
// have been back and lost again: nobody knows the writes of that time. The same holds if a look lies
// further in the future: another clock has measured it.
const lookGap = 2 * time.Minute

// Interrupted reports whether no operator has looked for so long that the recorded loss may have
// ended meanwhile.
func (o *Observation) Interrupted() bool {
	st := o.Status.Recovery
	if st == nil || st.LostDate == "" || o.Now.Sub(o.Recovery.LookedAt).Abs() <= lookGap {
		return false
	}
	at, err := time.Parse(time.RFC3339, st.LastUpdateTime)
	return err != nil || o.Now.Sub(at).Abs() > lookGap
}

// LostDate is when an operator first saw no quorum, as recorded, or as this one remembers. After a
// time without looks, the loss begins with the next look. It begins again while a quorum may serve
// unseen.
func (o *Observation) LostDate() time.Time {
	lost := o.Recovery.LostSince
	if st := o.Status.Recovery; st != nil {
		if at, err := time.Parse(time.RFC3339, st.LostDate); err == nil {
			lost = at
		}
	}
	switch again := o.Recovery.LostAgain; {
	case again.After(lost) || !again.IsZero() && lost.After(o.Now):
		return again
	case lost.IsZero():
		return o.Now
	}
	return lost
}

// readyLate is how long Kubernetes finds the pod of a dead node ready.
const readyLate = time.Minute

// MayServeUnseen reports whether a quorum may serve that the operator does not see: so many pods are ready, and do
// not answer. A network policy, a certificate or a password can be the cause. etcd is ready only with a
// quorum. In the first minute after a loss, Kubernetes may be wrong.
func (o *Observation) MayServeUnseen() bool {
	if o.Quorum || o.Now.Sub(o.LostDate()).Abs() < readyLate {
		return false
	}
	ready := 0
	for _, p := range o.Pods {
		if p.Ready && !p.Deleting && !o.HasMember(func(m MemberState) bool { return m.PodName == p.Name && m.Answers() }) {
			ready++
		}
	}
	return ready >= etcd.Quorum(o.knownVoters())
}

// LastQuorumDate is when an operator last saw a quorum; zero if nobody knows.
func (o *Observation) LastQuorumDate() time.Time {
	var lost, steady time.Time // what the loss and the record state; zero if nobody wrote them
	if st := o.Status.Recovery; st != nil {
		lost, _ = time.Parse(time.RFC3339, st.LastQuorumDate)
	}
	if o.Record != nil {
		steady, _ = time.Parse(time.RFC3339, o.Record.LastUpdateTime)
	}
	return latest(lost, steady)
}

func (o *Observation) bounds() recovery.Bounds {
	return recovery.Bounds{
		Revisions: o.Spec.Recovery.MaxLostRevisions, Unseen: o.Spec.Recovery.MaxLost(),
		LastQuorum: o.LastQuorumDate(), Lost: o.LostDate(), Created: o.Created, Rewritten: o.Accepted != "",
	}
}

// automaticObstacle says why the automatic recovery does not act, whatever is left; "" if it may.
func (o *Observation) automaticObstacle() string {
	held := o.choiceHeld()
	names, enough := o.Returning()
	switch r := o.Record; {
	case o.Spec.Paused:
		return "spec.paused is true"
	case held != "":
		return held
	case o.Blind != "":
		return "the operator can't ask the members: " + o.Blind
	case o.LoginRefused != "":
		return "the operator can't log in to etcd: " + o.LoginRefused
	case o.SourceUnreadable != "":
		return "the backup that the cluster began with is unknown: " + o.SourceUnreadable
	case r == nil || r.ClusterID == "" || r.Revision == 0 || len(r.Members) == 0:
		return "status.record is missing or incomplete, so nobody knows who the members are and what they have committed"
	case enough && len(names) == 0:
		return "enough members run for a quorum: find out why they elect no leader"
	case enough:
		return "members may return with their data: " + strings.Join(names, ", ") + ". Bring them back: nothing is lost then"
	case o.Recovery.Unread != "":
		return o.Recovery.Unread
	case o.Status.RestoredFrom != nil && o.LostDate().Sub(o.Created) < calmAfterRestore:
		return fmt.Sprintf("the cluster was restored at %s, less than %s before this loss: the loss may have the same cause", o.Created.UTC().Format(time.RFC3339), calmAfterRestore)
	}
	return ""
}

// automaticStop says why the operator gives up an automatic recovery before its commit; "" if it
// continues.
func (o *Observation) automaticStop() string {
	if o.committedTo(o.automaticChoice()) {
		return ""
	}
	if !o.Spec.RecoversAutomatically() {
		return "spec.recovery.mode is no longer Automatic; the cluster is unchanged"
	}
	if names, enough := o.Returning(); enough {
		return "members may return with their data (" + strings.Join(names, ", ") + "); the cluster is unchanged"
	}
	return ""
}

// Returning names the members that do not answer and may still have their data, and reports whether
// these and the members that answer may be enough for a quorum. It is meant for a decision that no person
// checks, so it counts more members than the ways out do: also a pod that is being deleted, which
// may run on behind a broken network; an empty volume, whose disk may not be mounted; whoever
// somebody else runs; and pods and volumes of nobody known. A quorum of the members that one
// survivor remembers or of those on record is enough.
func (o *Observation) Returning() (names []string, enough bool) {
	known := map[string]bool{}
	note := func(name string) {
		if !known[name] {
			names = append(names, name)
		}
		known[name] = true
	}
	remembered, voters := 0, o.Voters()
	for _, m := range o.Members {
		name := m.Title()
		switch {
		case m.Status != nil && !m.Status.Learner:
			known[name] = true
		case m.Status != nil:
			known[name] = true
			continue
		case m.Foreign() || o.mayHold(name):
			note(name)
		default:
			continue
		}
		if !m.Learner {
			remembered++
		}
	}
	recorded, size := 0, 0
	if o.Record != nil {
		recorded, size = o.recordedHolders(note)
	}
	others := o.otherHolders(known, note)
	slices.Sort(names)
	return names, len(voters) > 0 && remembered+others >= etcd.Quorum(len(voters)) || size > 0 && recorded+others >= etcd.Quorum(size)
}

// recordedHolders counts the members on record that may have their data, and those that may have
// a vote.
func (o *Observation) recordedHolders(note func(string)) (holders, voters int) {
	for _, r := range o.Record.Members {
		if r.Removing {
			continue // otherHolders counts what is left of it
		}
		i := slices.IndexFunc(o.Members, func(m MemberState) bool { return etcd.FormatID(m.ID) == r.ID })
		if !o.Status.IsLearner(r.ID) {
			voters++
		}
		switch {
		case i >= 0 && o.Members[i].Status != nil:
			if !o.Members[i].Status.Learner {
				holders++
			}
		case i >= 0 && (o.Members[i].Foreign() || o.mayHold(r.Name)):
			note(o.Members[i].Title())
			holders++
		case i < 0 && (!strings.HasPrefix(r.Name, o.Names.Cluster+"-") || o.mayHold(r.Name)):
			note(cmp.Or(r.Name, "member "+r.ID))
			holders++
		}
	}
	return holders, voters
}

// otherHolders counts pods and volumes that may hold data and belong to no known member.
func (o *Observation) otherHolders(known map[string]bool, note func(string)) int {
	n := 0
	count := func(name string) {
		if !known[name] && o.mayHold(name) {
			note(name)
			n++
		}
	}
	for _, p := range o.Pods {
		if p.Started && !(o.Record != nil && slices.ContainsFunc(o.Record.Members, func(m api.RecordedMember) bool { return m.Name == p.Name && !m.Removing })) {
			count(p.Name)
		}
	}
	for _, v := range o.Volumes {
		count(v.Name)
	}
	return n
}

// mayHold reports whether a member that does not answer may still have its data.
func (o *Observation) mayHold(name string) bool {
	p, v := o.Pod(name), o.Volume(name)
	switch {
	case v != nil && !v.Lost && !v.Deleting:
		return true
	case p == nil || p.Finished || p.Dataless:
		return false
	case v != nil || p.Claimed:
		return p.Started // its node may still have the volume mounted
	}
	return true
}
