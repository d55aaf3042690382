// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// catchUpEntries is how far behind the leader a restarted member may be when the
// next one is restarted. A cluster under load is never at zero.
const catchUpEntries = 1000

// checkVersion tells why the members can't be moved to the version of the spec.
func (o *observation) checkVersion() error {
	target, err := etcd.ParseVersion(o.spec.EffectiveVersion())
	if err != nil {
		return err
	}
	running, err := o.runningVersion()
	if err != nil {
		return err
	}
	if first, err := etcd.ParseVersion(o.status.InitialVersion); err == nil && running.Minor != target.Minor {
		if err := etcd.CheckOrigin(first, target); err != nil {
			return err
		}
	}
	return etcd.CheckChange(running, target)
}

// runningVersion is the oldest version that runs or, where nobody answers, that
// the cluster was last seen to run.
func (o *observation) runningVersion() (etcd.Version, error) {
	if lowest, ok := o.lowestVersion(); ok {
		return lowest, nil
	}
	v, err := etcd.ParseVersion(o.status.CurrentVersion)
	if err != nil {
		return v, fmt.Errorf("no member answers, and its version is not on record: %w", err)
	}
	return v, nil
}

// joinVersion is the version of new members: that of the spec once all members
// have it, and until then the oldest that runs. A new member thus never depends
// on an image that no member has run.
func (o *observation) joinVersion() string {
	target := o.spec.EffectiveVersion()
	lowest, ok := o.lowestVersion()
	if !ok {
		return target
	}
	if !slices.ContainsFunc(o.own(), o.mislabelled) {
		return lowest.String()
	}
	// What runs has no image of its own name: one that a member runs is taken, if
	// possible another than the one that the spec asks for, for that may be the fault.
	images := map[string]string{} // by version
	for _, m := range o.own() {
		if m.pod != nil && m.pod.started {
			images[m.pod.version] = m.pod.image
		}
	}
	for _, version := range slices.Sorted(maps.Keys(images)) {
		if !sameVersion(version, target) {
			return version
		}
	}
	return target
}

// upgradeOneMember changes the version of one member in place. It goes on to the
// next only when all members run what their pods say, healthy and caught up. The
// leader comes last, and hands over before.
func upgradeOneMember(o *observation) step {
	target := o.spec.EffectiveVersion()
	own := o.own()
	slices.SortFunc(own, func(a, b memberState) int { return cmp.Compare(a.name, b.name) })
	old := slices.DeleteFunc(own, func(m memberState) bool {
		return m.pod == nil || m.pod.legacy || m.pod.image == o.image(target)
	})
	if why := o.unsettled(); why != "" {
		return wait{why}
	}
	if len(old) == 0 || o.checkVersion() != nil {
		return nil
	}
	if why := o.mislabelledTarget(); why != "" {
		return idle{why}
	}
	if why := o.short(); why != "" {
		return wait{why}
	}
	if !o.agreedOn(target) {
		// It was just upgraded: etcd has not agreed on that version yet, and a
		// member two minors ahead takes the others down.
		return wait{"for etcd to agree on the version that all members run"}
	}
	if s := o.freshSnapshots(target); s != nil {
		return s
	}
	voters := o.voters()
	if slices.ContainsFunc(voters, memberState.foreign) && count(voters, memberState.healthy)-1 < etcd.Quorum(len(voters)) {
		return idle{"members that the operator did not make may be down: with one more that restarts the quorum could be lost"}
	}
	next := old[0]
	if i := slices.IndexFunc(old, func(m memberState) bool { return !m.leader() }); i >= 0 {
		next = old[i]
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return setVersion{pod: next.pod.name, uid: next.pod.uid, from: next.pod.version, to: target, previous: next.status.Version, admitted: next.pod.admitted}
}

// agreedOn reports whether etcd lets members start as the target. A member of the minor
// that all run can start whatever they have agreed on, which is asked only while the
// version is to change.
func (o *observation) agreedOn(target string) bool {
	to, err := etcd.ParseVersion(target)
	if err != nil {
		return false
	}
	lowest, ok := o.lowestVersion()
	return ok && lowest.Minor == to.Minor || to.Minor <= o.clusterVersion.Minor+1
}

// freshSnapshots makes all members take a snapshot of their raft state where the
// target could not replay entries that the cluster's first version wrote. etcd
// takes one only after so many entries, for which a quiet cluster needs weeks.
func (o *observation) freshSnapshots(target string) step {
	to, err := etcd.ParseVersion(target)
	if err != nil || to.ReplayableFrom() == 0 {
		return nil
	}
	if first, err := etcd.ParseVersion(o.status.InitialVersion); err == nil && first.Minor >= to.ReplayableFrom() {
		return nil
	}
	lowest, ok := o.lowestVersion()
	if !ok || lowest.Minor >= to.Minor {
		return nil
	}
	applied, last := ^uint64(0), uint64(0)
	for _, m := range o.own() {
		applied, last = min(applied, m.status.RaftApplied), max(last, m.status.RaftIndex)
	}
	switch {
	case o.logTarget == 0:
		return advanceLog{last, last + etcd.SnapshotCount + catchUpEntries}
	case last < o.logTarget:
		return advanceLog{last, o.logTarget}
	case applied < o.logTarget:
		return wait{"for all members to apply the log"}
	}
	return nil
}

// unsettled tells why no member may be restarted now, or "".
func (o *observation) unsettled() string {
	var last uint64
	for _, m := range o.members {
		if m.status != nil {
			last = max(last, m.status.RaftIndex)
		}
	}
	for _, m := range o.own() {
		switch {
		case !m.healthy() || m.pod == nil:
			return "for " + m.name + " to be healthy"
		case last > m.status.RaftApplied+catchUpEntries:
			return "for " + m.name + " to catch up"
		case !sameVersion(m.pod.version, m.status.Version) && !o.mislabelled(m):
			return fmt.Sprintf("for %s to restart as %s", m.name, m.pod.version)
		case !m.pod.ready:
			return "for the pod of " + m.name + " to be ready"
		}
	}
	return ""
}

// short tells whether a restart would take the quorum because members are
// missing, or "". Where the spec wants no more of them, nothing is gained by
// waiting.
func (o *observation) short() string {
	voters := o.voters()
	if len(voters) < o.spec.Size && count(voters, memberState.healthy)-1 < etcd.Quorum(len(voters)) {
		return "for the missing members: without them a restart takes the quorum"
	}
	return ""
}

func sameVersion(a, b string) bool {
	va, erra := etcd.ParseVersion(a)
	vb, errb := etcd.ParseVersion(b)
	return erra == nil && errb == nil && va.EQ(vb.Version)
}

// heir is the follower to lead next: one that stays and is the most advanced. It
// has its new version already, since followers go first.
func (o *observation) heir(leader memberState) (memberState, bool) {
	candidates := slices.DeleteFunc(o.voters(), func(m memberState) bool {
		return m.ID == leader.ID || m.foreign() || !m.healthy() || m.pod == nil
	})
	if len(candidates) == 0 {
		return memberState{}, false
	}
	return slices.MaxFunc(candidates, func(a, b memberState) int {
		return cmp.Or(
			-compareBool(o.behindTemplate(a), o.behindTemplate(b)),
			cmp.Compare(a.status.RaftIndex, b.status.RaftIndex),
			-cmp.Compare(a.name, b.name),
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
