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
)

// Import is what the operator knows of a running etcd that the cluster takes over.
//
// The members of the cluster join that etcd. Two sides share it then: the former members and the
// own ones. The rule for all steps is that the import never rests in a state in which neither side
// alone has a quorum. Before the commit the former members have it, and afterwards the own ones. In
// between, one vote more and one member less follow each other at once.
type Import struct {
	// Checked is true once the operator has looked at the running etcd. Obstacles are what keeps
	// members from joining it.
	Checked   bool
	Obstacles []string
	// Comparing is true while a look without other obstacles reads the data of all members, which may take an hour.
	Comparing bool
	// Problem is why the operator may reach no member of the etcd although all serve: it has no client
	// certificate; "" if it knows of nothing.
	Problem string
	// ClusterID and Members are those of the etcd without obstacles.
	ClusterID uint64
	Members   []etcd.Member
	// Held is true if a finalizer delays the deletion of the EtcdCluster.
	Held bool
	// Proven are the own members whose data is that of the others, and to which all former members
	// were connected. Doubt says what the proof of another one waits for, such as "for an answer".
	Proven map[uint64]bool
	Doubt  string
	// WriteStop is what a copy without obstacles expects.
	WriteStop api.ImportWriteStop
	// Fence is the alarm by which an etcd refuses writes on behalf of this EtcdCluster.
	Fence etcd.Alarm
	// Source is what the etcd to copy says in this pass; nil: it does not answer, or nobody has
	// asked. Silence is why.
	Source  *CopySource
	Silence string
	// SilentFor is for how long this operator has asked it and got no answer.
	SilentFor time.Duration
	// Disarmed is true if its last answer said that it may have taken writes after the last one that
	// the copy holds.
	Disarmed bool
}

// Importing reports whether an import is to begin, or has begun and is not complete.
func (o *Observation) Importing() bool {
	if o.Status.Import.Begun() {
		return o.Status.Import.CompletionDate == ""
	}
	// A restore of an imported cluster keeps the field.
	restored := o.Source != nil || o.SourceUnreadable != "" || o.Status.RestoredFrom != nil
	return o.Spec.ImportFrom != nil && !restored && (o.Status.Phase == api.ClusterPhaseNone || o.Status.Phase == api.ClusterPhaseCreating)
}

// Committed reports whether the former members leave, or have left.
func (o *Observation) Committed() bool {
	return o.Status.Import.Begun() && o.Status.Import.CommitDate != ""
}

// FormerVoters are the members of the imported etcd that are left, without learners.
func (o *Observation) FormerVoters() []MemberState {
	return slices.DeleteFunc(o.Voters(), func(m MemberState) bool { return !m.Foreign() })
}

// ownVoters are the cluster's own members with a vote.
func (o *Observation) ownVoters() []MemberState {
	return slices.DeleteFunc(o.Voters(), MemberState.Foreign)
}

// Witnesses are the former members that have to answer before another own member gets a vote: all of them, until
// the commit. From then on, one that is lost can't hold up the import, because there is no way back.
func (o *Observation) Witnesses() []MemberState {
	return slices.DeleteFunc(o.FormerVoters(), func(m MemberState) bool { return o.Committed() && !m.Healthy() })
}

// formerPeers are the peer URLs of the former members that have to answer, one of each.
func (o *Observation) formerPeers() []string {
	if !o.Importing() {
		return nil
	}
	var peers []string
	for _, m := range o.Witnesses() {
		if len(m.PeerURLs) > 0 {
			peers = append(peers, m.PeerURLs[0])
		}
	}
	return peers
}

// wanted is how many members the cluster should have now. During an import, more of them than
// former members could not vote before those have left.
func (o *Observation) wanted() int {
	if o.Importing() && len(o.FormerVoters()) > 0 {
		return min(o.Spec.Size, max(1, len(o.Status.Import.Members)))
	}
	return o.Spec.Size
}

// putImportBack says what is missing if somebody has removed the field before the import was complete. The
// members may all serve then.
const putImportBack = "spec.importFrom, which is gone before the import is complete: put it back, because the operator reaches no member of the imported etcd without it"

// importProblem follows what the operator waits for, if it may be the operator that reaches no former member.
func (o *Observation) importProblem() string {
	if o.Import.Problem == "" {
		return ""
	}
	return " (" + o.Import.Problem + ")"
}

// importGone says what to do if somebody has removed the field before the import was complete. Without it, the
// operator can neither let the former members leave, nor let an etcd accept writes again.
func (o *Observation) importGone() string {
	const gone = "spec.importFrom is gone before the import is complete: put it back"
	if o.Committed() {
		return gone
	}
	return gone + ", or delete the EtcdCluster"
}

// followImport begins and ends an import, and stops one whose etcd somebody else changes.
func followImport(o *Observation) Step {
	if !o.Importing() {
		if o.Import.Held {
			return ReleaseImport{}
		}
		return nil
	}
	if o.Copying() {
		return o.followCopy()
	}
	if !o.Status.Import.Begun() {
		return o.beginImport()
	}
	if !o.Import.Held && !o.Ending {
		return HoldImport{}
	}
	if !o.Quorum {
		return nil
	}
	if why := o.importTrouble(); why != "" {
		if s := o.keepMembers(); s != nil {
			return s
		}
		return Idle{Reason{ImportHeld, why}}
	}
	former, own := len(o.FormerVoters()), o.ownVoters()
	switch {
	case former == 0 && len(own) > 0:
		return FinishImport{}
	case o.Committed() || len(own) == 0 || len(own) < former:
	case o.committedBefore() && o.allProven(own):
		return CommitImport{}
	case o.committedBefore() && len(own) > former:
		// The own members are a quorum alone, and the proofs of another operator are pending.
	default:
		return o.undoVote(own, former)
	}
	return nil
}

// keepMembers returns a step that an import takes also while it is stopped, perhaps for days; nil: there is
// none. The own members have votes by then. None of these steps changes the membership.
func (o *Observation) keepMembers() Step {
	for _, rule := range []func(*Observation) Step{remakeLostPods, noteStarted, KeepBudget} {
		if s := through(o, rule(o)); s != nil {
			return s
		}
	}
	return nil
}

// mostVotesUndone is how often within an hour the operator takes members out again to which somebody else
// has given a vote. Each of them costs a copy of the database.
const mostVotesUndone = 3

// undoVote takes out an own member, because the former ones must remain a quorum alone. Somebody has removed
// one of them, or has promoted a learner.
func (o *Observation) undoVote(own []MemberState, former int) Step {
	if former < len(o.Status.Import.Members) {
		return o.letGo(own, "a former member has left before the commit of the import, and the others must remain a quorum")
	}
	s := o.letGo(own, "somebody else has given a member a vote before the commit of the import, and the former members must remain a quorum")
	if r, ok := s.(RemoveMember); ok {
		r.VoteUndone = true
		return r
	}
	return s
}

// promoters says why no further member joins an imported etcd: somebody else promotes each; "" if nobody does.
func (o *Observation) promoters() string {
	if !o.Importing() || o.Committed() || o.VotesUndone < mostVotesUndone {
		return ""
	}
	return fmt.Sprintf("somebody else has given new members a vote %d times within an hour, and the operator took each of them out again: "+
		"freeze the tool that manages the imported etcd; the operator tries again within an hour", o.VotesUndone)
}

// committedBefore reports whether the own members have got the majority by the user's word, and somebody
// has wiped the record of it. Former members that somebody else has removed don't count: then the
// record names more of them than own members have votes.
func (o *Observation) committedBefore() bool {
	return o.Spec.ImportFrom.Commit && len(o.ownVoters()) >= max(1, len(o.Status.Import.Members))
}

// allProven reports whether members hold the data of the imported etcd.
func (o *Observation) allProven(members []MemberState) bool {
	return !slices.ContainsFunc(members, func(m MemberState) bool { return !o.Import.Proven[m.ID] })
}

// beginImport records the etcd that the cluster takes over, after a check without obstacles and
// with a finalizer. No member joins before.
func (o *Observation) beginImport() Step {
	switch {
	case o.Quorum:
		// An own member answers: it has begun before somebody set the field, or somebody wiped the status.
		id := o.Seen.ClusterID
		var former []etcd.Member
		for _, m := range o.Members {
			if m.Foreign() {
				former = append(former, m.Member)
			}
		}
		if len(former) == 0 {
			return MarkRunning{} // there is nothing to import: the own members serve data of their own
		}
		return BeginImport{ClusterID: id, Members: former}
	case !o.Import.Checked:
		return Wait{"for the check of the etcd to import"}
	case len(o.Import.Obstacles) > 0:
		return Idle{Reason{ImportHeld, strings.Join(o.Import.Obstacles, "; ")}}
	case !o.Import.Held:
		return HoldImport{}
	}
	return BeginImport{ClusterID: o.Import.ClusterID, Members: o.Import.Members}
}

// importTrouble says what stops an import that has begun; "" if nothing does.
func (o *Observation) importTrouble() string {
	if o.Spec.ImportFrom == nil && !o.sidesEqual() {
		return o.importGone()
	}
	target, err := etcd.ParseVersion(o.Spec.EffectiveVersion())
	for _, m := range o.Members {
		if !m.Foreign() {
			continue
		}
		if !o.Status.Import.Has(etcd.FormatID(m.ID)) {
			return fmt.Sprintf("somebody else has added the member %s: freeze the tool that manages the imported etcd, and remove the member (etcdctl member remove %s)", m.Member, etcd.FormatID(m.ID))
		}
		if m.Status == nil || err != nil || o.sidesEqual() {
			continue
		}
		if v, err := etcd.ParseVersion(m.Status.Version); err == nil && v.Minor != target.Minor {
			return fmt.Sprintf("the member %s runs etcd %s, and spec.version is %s: both need the same minor until the import is complete", m.Member, v, target)
		}
	}
	return ""
}

// sidesEqual reports whether neither side of an import has a quorum alone. It must not rest there: an edit of
// the version, or the removal of spec.importFrom, then waits until a former member has left.
func (o *Observation) sidesEqual() bool {
	return o.Committed() && len(o.ownVoters()) == len(o.FormerVoters())
}

// Title is the name by which a person finds a member.
func (m MemberState) Title() string {
	return cmp.Or(m.PodName, m.Name, "member "+etcd.FormatID(m.ID))
}

// mayVote reports whether another vote of an own member keeps the rule of the import.
func (o *Observation) mayVote(m MemberState) bool {
	if !o.Importing() {
		return true
	}
	former, own := len(o.FormerVoters()), len(o.ownVoters())
	switch {
	case former == 0:
		return true
	case !o.Import.Proven[m.ID], o.dataDiffers():
		return false
	case !o.Committed():
		// Each vote makes the quorum of the former members smaller by one loss.
		return own+1 < former && o.formerDown() == ""
	case own+1 < former:
		return true
	case own >= former:
		return true
	}
	// The vote makes both sides equal, and a former member has to leave at once.
	voters := o.Voters()
	return Count(o.ownVoters(), steady) == own && Count(voters, steady)+1 >= etcd.Quorum(len(voters)+1)
}

// formerDown names a former member that is not healthy, and says what it does not do; "" if all are.
func (o *Observation) formerDown() string {
	for _, m := range o.FormerVoters() {
		switch {
		case m.Status == nil:
			return m.Title() + ", a former member that does not answer at an endpoint of spec.importFrom" + o.importProblem()
		case !m.Healthy():
			return m.Title() + ", a former member that does not serve"
		}
	}
	return ""
}

// joinedBeforeCommit reports whether all members have joined that can before the commit. One whose pod is
// being deleted may lose its data, and after the commit there is no way back.
func (o *Observation) joinedBeforeCommit() bool {
	former, own, learners := o.FormerVoters(), o.ownVoters(), o.Learners()
	voters := min(o.Spec.Size, len(former)-1)
	proven := func(m MemberState) bool { return steady(m) && o.Import.Proven[m.ID] }
	if len(own) != voters || Count(own, proven) < voters || o.formerDown() != "" || o.dataDiffers() {
		return false
	}
	if o.Spec.Size == voters {
		return true
	}
	return len(learners) == 1 && o.inSync(learners[0])
}

// inSync reports whether a learner could vote at once.
func (o *Observation) inSync(m MemberState) bool {
	return steady(m) && o.Import.Proven[m.ID] && o.lastIndex() <= m.Status.RaftApplied+catchUpEntries
}

// goBack is how a person ends an import whose members have votes. A foreground deletion ends all their pods at once,
// before any of them can leave: the finalizer delays only that of the EtcdCluster. The former members may then be
// too few for a quorum.
const goBack = "delete the EtcdCluster to go back (with --cascade=background: --cascade=foreground, and Argo CD by default, end all its pods at once, which can cost the quorum)"

// importDiffers says that an import waits until a person has decided whose data is right.
func (o *Observation) importDiffers() string {
	text := "the alarm CORRUPT says that members hold different data, and the members that the import removes may hold the right one: compare the members and lift the alarm"
	if !o.Committed() {
		text += ", or " + goBack
	}
	return text
}

// commitImport records the user's word. From then on the import only goes forward.
func commitImport(o *Observation) Step {
	if o.Importing() && !o.Copying() && o.Status.Import.Begun() && !o.Committed() && o.Spec.ImportFrom.Commit && o.joinedBeforeCommit() {
		return CommitImport{}
	}
	return nil
}

// importIdle says what an import waits for when no rule has anything to do.
func (o *Observation) importIdle() Reason {
	own := o.Own()
	ends := slices.IndexFunc(own, stopping)
	switch {
	case o.Copying():
		return because("the new cluster is about to accept writes")
	case o.dataDiffers():
		return Reason{ImportHeld, o.importDiffers()}
	case ends >= 0:
		return because("the operator waits " + o.awaited(own[ends], "the import continues"))
	case o.Committed():
		return because("the former members of the imported etcd are leaving")
	case o.joinedBeforeCommit():
		return Reason{ImportJoined, fmt.Sprintf("check that clients use them, and set spec.importFrom.commit to true: the former members leave then; or %s. %d of %d votes belong to former members",
			goBack, len(o.FormerVoters()), len(o.Voters()))}
	}
	planned := o.Planned()
	switch down := o.formerDown(); {
	case o.promoters() != "":
		return Reason{ImportHeld, o.promoters()}
	case down != "":
		return because("the operator waits for " + down + ": start it, or " + goBack)
	case len(planned) > 0 && planned[0].Reaching:
		return because("the operator waits until the pod " + planned[0].Name + " reaches all former members at their peer URLs: see the log of its container check-dns")
	case o.Import.Doubt != "":
		return because("the operator waits " + o.Import.Doubt)
	}
	return because("members join the imported etcd")
}
