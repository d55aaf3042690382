// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// catchUpEntries is how far behind the leader a restarted member may be before the next
// restart. A cluster under load is never at zero.
const catchUpEntries = 1000

// mostSnapshotCount is the largest snapshot count for which the operator fills the logs of members. It takes
// minutes to append so many entries.
const mostSnapshotCount = 1_000_000

// CheckVersion returns why the members can't move to the spec's version.
func (o *Observation) CheckVersion() error {
	target, err := etcd.ParseVersion(o.Spec.EffectiveVersion())
	if err != nil {
		return err
	}
	running, err := o.runningVersion()
	if err != nil && o.Importing() && o.Status.CurrentVersion == "" {
		return nil // no own member has served yet
	}
	if err != nil {
		return err
	}
	if running.Minor != target.Minor {
		if err := o.checkOrigin(running, target); err != nil {
			return err
		}
	}
	if err := etcd.CheckChange(running, target); err != nil {
		return err
	}
	if err := o.checkProbes(target); err != nil {
		return err
	}
	return o.checkSnapshots(target)
}

// checkProbes returns an error if the probes of a pod ask for what the target does not serve. The pod would never be
// ready, and the kubelet would restart etcd every half hour.
func (o *Observation) checkProbes(target etcd.Version) error {
	if target.HasLivez() {
		return nil
	}
	for _, m := range o.Own() {
		if m.Pod != nil && m.Pod.LivezProbes {
			return fmt.Errorf("etcd %s does not serve /livez, which the probes of the pod %s need: use 3.5.11, or 3.4.29 for etcd 3.4, or a later release", target, m.PodName)
		}
	}
	return nil
}

// runningVersion is the oldest running version or, if nobody answers, the cluster's last known
// version.
func (o *Observation) runningVersion() (etcd.Version, error) {
	if lowest, ok := o.LowestVersion(); ok {
		return lowest, nil
	}
	v, err := etcd.ParseVersion(o.Status.CurrentVersion)
	if err != nil {
		return v, fmt.Errorf("no member answers, and its version is not on record: %w", err)
	}
	return v, nil
}

// joinVersion is the version of new members: the spec's once all members have it, and until
// then the oldest running one. So a new member never depends on an image that no member has
// run.
func (o *Observation) joinVersion() string {
	target := o.Spec.EffectiveVersion()
	lowest, ok := o.LowestVersion()
	if !ok {
		return target
	}
	if !slices.ContainsFunc(o.Own(), o.mislabelled) {
		return o.tagOf(lowest.String())
	}
	// There is no image of the running version's name. The rule uses an image that a member
	// runs, if possible another than the spec's, which may be at fault.
	images := map[string]string{} // by version
	for _, m := range o.Own() {
		if m.Pod != nil && m.Pod.Started {
			images[m.Pod.Version] = m.Pod.Image
		}
	}
	for _, version := range slices.Sorted(maps.Keys(images)) {
		if !manifest.SameVersion(version, target) {
			return version
		}
	}
	return target
}

// hasJoinImage reports whether a member to be may join with the image of its pod. The version of the spec
// may join early if it is the next patch (mayJoinAsNextPatch).
func (o *Observation) hasJoinImage(p manifest.PodState) bool {
	join := o.joinVersion()
	return p.Image == o.Image(join) || p.Image == o.Image(o.Spec.EffectiveVersion()) && o.nextPatchOf(join)
}

// mayJoinAsNextPatch reports whether a pod in which etcd has not run may get the version of the spec. If the
// image of the running version is gone, no member could join, and the upgrade waits for missing members. The
// pod changes in place: a new one would have the image that is gone.
func (o *Observation) mayJoinAsNextPatch(p manifest.PodState) bool {
	return !p.Seed && !o.hasRun(p) && p.Image == o.Image(o.joinVersion()) && o.nextPatchOf(p.Version)
}

// nextPatchOf reports whether the version of the spec is a later patch of a version, and the members may run it.
func (o *Observation) nextPatchOf(version string) bool {
	from, err := etcd.ParseVersion(version)
	to, toErr := etcd.ParseVersion(o.Spec.EffectiveVersion())
	return err == nil && toErr == nil && from.Major == to.Major && from.Minor == to.Minor && to.GT(from.Version) && o.CheckVersion() == nil
}

// upgradeOneMember changes the version of one member in place. It continues with the next only
// when all members run the version of their pods, healthy and caught up, by etcd's own answers. The
// leader comes last, and transfers leadership before.
func upgradeOneMember(o *Observation) Step {
	if o.Importing() || o.PeersRefuse() {
		return nil
	}
	target := o.Spec.EffectiveVersion()
	own := o.Own()
	slices.SortFunc(own, func(a, b MemberState) int { return cmp.Compare(a.PodName, b.PodName) })
	old := slices.DeleteFunc(own, func(m MemberState) bool {
		return m.Pod == nil || m.Pod.Legacy || has(*m.Pod, o.Image(target))
	})
	if len(old) == 0 {
		return o.unsettled()
	}
	next := old[0]
	if i := slices.IndexFunc(old, func(m MemberState) bool { return !m.leader() }); i >= 0 {
		next = old[i]
	}
	if why := o.unproven(o.Own()); why != "" {
		return Wait{why}
	}
	if s := o.unserved(next); s != nil { // all have a pod
		return s
	}
	if o.CheckVersion() != nil {
		return nil
	}
	if why := o.MislabelledTarget(); !why.IsZero() {
		return Idle{why}
	}
	if why := cmp.Or(o.short(), o.returning()); why != "" {
		return Wait{why}
	}
	if !o.agreedOn(target) {
		// It was just upgraded: etcd has not agreed on that version yet, and a member two
		// minors ahead would crash the others.
		return Wait{"for etcd to agree on the version that all members run"}
	}
	if s := o.freshSnapshots(target); s != nil {
		return s
	}
	voters := o.Voters()
	if slices.ContainsFunc(voters, MemberState.Foreign) && Count(voters, MemberState.Healthy)-1 < etcd.Quorum(len(voters)) {
		return Idle{because("members that the operator did not create may be down: the restart of one more could lose the quorum")}
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	if next.Pod.ShellProbes && next.KeepsData() && o.UpdateRefused == "" {
		return recycle(*next.Pod, "its probes need a shell, which newer images of etcd do not have")
	}
	return o.setVersion(*next.Pod, target, ranAs(next))
}

// setVersion restarts a pod's etcd as another version. previous is the one to which it can return.
func (o *Observation) setVersion(p manifest.PodState, to, previous string) SetVersion {
	return SetVersion{Pod: p.Name, UID: p.UID, From: p.Version, To: to, Previous: previous, Admitted: p.Admitted, Volume: o.unnoted(p.Name, to)}
}

// ranAs returns the version of the image to which a member can return.
func ranAs(m MemberState) string {
	if manifest.Holds(m.Pod.Version, m.Status.Version) {
		return m.Pod.Version // with the suffix of its tag
	}
	return m.Status.Version
}

// agreedOn reports whether etcd lets members start as the target. A member of the minor that
// all run can always start. The agreed version matters only while the version changes.
func (o *Observation) agreedOn(target string) bool {
	to, err := etcd.ParseVersion(target)
	if err != nil {
		return false
	}
	lowest, ok := o.LowestVersion()
	return ok && lowest.Minor == to.Minor || to.Minor <= o.ClusterVersion.Minor+1
}

// freshSnapshots makes all members take a snapshot of their raft state if the target could not
// replay entries of the cluster's first version. etcd takes a snapshot only after a number of
// entries, for which a quiet cluster needs weeks.
func (o *Observation) freshSnapshots(target string) Step {
	to, err := etcd.ParseVersion(target)
	if err != nil || !o.mayHoldOldEntries(to) {
		return nil
	}
	count, _ := o.rarestSnapshots()
	applied, last := ^uint64(0), uint64(0)
	for _, m := range o.Own() {
		applied, last = min(applied, m.Status.RaftApplied), max(last, m.Status.RaftIndex)
	}
	switch {
	case o.LogTarget == 0, count > o.LogCount: // an edit can make snapshots rarer
		return AdvanceLog{last, last + count + catchUpEntries, count}
	case last < o.LogTarget:
		return AdvanceLog{last, o.LogTarget, o.LogCount}
	case applied < o.LogTarget:
		return Wait{"for all members to apply the log"}
	}
	return nil
}

// mayHoldOldEntries reports whether members may have log entries that the target can't replay.
func (o *Observation) mayHoldOldEntries(target etcd.Version) bool {
	if target.ReplayableFrom() == 0 {
		return false
	}
	if first, err := etcd.ParseVersion(o.Status.InitialVersion); err == nil && first.Minor >= target.ReplayableFrom() {
		return false
	}
	lowest, ok := o.LowestVersion()
	return ok && lowest.Minor < target.Minor
}

// rarestSnapshots returns the largest snapshot count of the members, and the member that has it.
func (o *Observation) rarestSnapshots() (count uint64, member string) {
	for _, m := range o.Own() {
		if m.Pod == nil {
			continue
		}
		if n := cmp.Or(m.Pod.SnapshotCount, etcd.SnapshotCount); n > count {
			count, member = n, m.PodName
		}
	}
	return count, member
}

// checkSnapshots returns an error if a member would not take the snapshot that the target needs.
func (o *Observation) checkSnapshots(target etcd.Version) error {
	count, member := o.rarestSnapshots()
	if count <= mostSnapshotCount || !o.mayHoldOldEntries(target) {
		return nil
	}
	when := fmt.Sprintf("takes one only after %d entries", count)
	if count == manifest.UnreadSnapshotCount {
		when = "has a setting for that which the operator can't read"
	}
	return fmt.Errorf("etcd %s can't replay log entries from before etcd 3.%d, so each member must take a snapshot first, and %s %s: "+
		"set ETCD_SNAPSHOT_COUNT in spec.pod.etcdEnv, or --snapshot-count in spec.pod.extraArgs, to a number up to %d",
		target, target.ReplayableFrom(), member, when, mostSnapshotCount)
}

// unsettled waits for what must be before a member may restart; nil: one may.
func (o *Observation) unsettled() Step { return o.unsettledOf(o.Own()) }

// unsettledOf asks the same of some of the members.
func (o *Observation) unsettledOf(members []MemberState) Step {
	if why := o.unproven(members); why != "" {
		return Wait{why}
	}
	if i := slices.IndexFunc(members, unready); i >= 0 {
		return untilReady(members[i])
	}
	return nil
}

// unproven returns the first of the members that has not shown to etcd that it serves as the
// version of its pod, as a text, or "".
func (o *Observation) unproven(members []MemberState) string {
	last := o.lastIndex()
	for _, m := range members {
		switch {
		case !m.Healthy() || m.Pod == nil:
			return "for " + m.PodName + " to be healthy"
		case m.Pod.Deleting:
			return "for " + m.PodName + " to return: its pod is being deleted"
		case last > m.Status.RaftApplied+catchUpEntries:
			return "for " + m.PodName + " to catch up"
		case m.Pod.Restarting && !showsRestart(m), !manifest.Holds(m.Pod.Version, m.Status.Version) && !o.mislabelled(m):
			return fmt.Sprintf("for %s to restart as %s", m.PodName, m.Pod.Version)
		}
	}
	return ""
}

// showsRestart reports whether the version of a member shows that it has restarted since the change
// of its image. The same version of another repository does not.
func showsRestart(m MemberState) bool {
	return m.Pod.Previous != "" && !manifest.Holds(m.Pod.Previous, m.Status.Version)
}

// steadyTime is how long a pod is ready before the Service can rely on it alone, unless the operator
// has seen its startup probe succeed. After a restart in place, the kubelet reports a pod as ready, a
// second later as not ready, and then as ready again.
const steadyTime = 1500 * time.Millisecond

// unserved waits until the Service can spare the pod of a member; nil: it can. The kubelet notices a
// second or more after etcd that a member serves. One member at a time may wait for the kubelet
// while the next one restarts, if another pod is ready and stays so.
func (o *Observation) unserved(next MemberState) Step {
	others := slices.DeleteFunc(o.Own(), func(m MemberState) bool { return m.ID == next.ID })
	waiting := slices.DeleteFunc(slices.Clone(others), func(m MemberState) bool { return !unready(m) })
	if len(waiting) > 1 || len(waiting) > 0 && len(waiting) == len(others) {
		return untilReady(waiting[0])
	}
	ready := slices.DeleteFunc(others, unready)
	steady := func(m MemberState) bool { return m.Pod.StartedUp || o.Now.Sub(m.Pod.ReadySince) >= steadyTime }
	if len(ready) > 0 && !slices.ContainsFunc(ready, steady) {
		return Wait{"for the pod of " + ready[0].PodName + " to stay ready"}
	}
	return nil
}

// unready reports whether the kubelet reports a pod as not ready, or is about to.
func unready(m MemberState) bool { return !m.Pod.Ready || m.Pod.StartingUp }

func untilReady(m MemberState) Step {
	return WaitForPod{"for the pod of " + m.PodName + " to be ready"}
}

// returning returns why no healthy voter may stop shortly after an outage, or "". A member whose
// disk hangs looks healthy until it has something to write, and then the quorum needs the others.
func (o *Observation) returning() string {
	if !o.QuorumReturned.IsZero() && o.Now.Sub(o.QuorumReturned) < settleTime && len(o.Voters()) > 2 {
		return "for the quorum to last, which has just returned"
	}
	return ""
}

// short returns whether a restart would break the quorum because members are missing, as a
// text, or "". If the spec wants no more members, or none can join, waiting does not help.
func (o *Observation) short() string {
	if o.Certificates.MembersHeld != "" {
		return ""
	}
	voters := o.Voters()
	if len(voters) < o.Spec.Size && Count(voters, MemberState.Healthy)-1 < etcd.Quorum(len(voters)) {
		return "for the missing members: without them a restart takes the quorum"
	}
	return ""
}

// successor returns the follower to lead next: one that stays and is the most advanced. It already
// has its new version, since followers go first. One that is about to stop would lead for seconds.
func (o *Observation) successor(leader MemberState) (MemberState, bool) {
	candidates := slices.DeleteFunc(o.Voters(), func(m MemberState) bool {
		return m.ID == leader.ID || m.Foreign() || !steady(m) || m.Pod == nil
	})
	if len(candidates) == 0 {
		return MemberState{}, false
	}
	return slices.MaxFunc(candidates, func(a, b MemberState) int {
		return cmp.Or(
			compareBool(o.accepts(a), o.accepts(b)),
			-compareBool(o.BehindTemplate(a), o.BehindTemplate(b)),
			cmp.Compare(a.Status.RaftIndex, b.Status.RaftIndex),
			-cmp.Compare(a.PodName, b.PodName),
		)
	}), true
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
