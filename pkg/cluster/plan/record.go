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
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// AcceptAnnotation on an EtcdCluster is a person's decision to accept the current data,
// whatever the record says. Its value names the overruled record, and does not apply to a
// later one.
const AcceptAnnotation = api.OperatorAnnotations + "accept-data"

// Reasons of Available for a cluster that contradicts its record.
const (
	ReasonForgotten = "Members forgotten"
	ReasonOtherID   = "Cluster ID changed"
	ReasonWentBack  = "Data went back"
)

// Contradiction says how the cluster contradicts the record, with the reason of Available; ""
// if it does not, or if a person has accepted that. A cluster that keeps its data keeps its
// ID, its index and its revision, and forgets only members that a quorum removes. Only a
// quorum's answer counts here: one member may lag behind.
func (o *Observation) Contradiction() (reason, message string) {
	if o.Status.Phase == api.ClusterPhaseCreating || o.Accepted != "" && o.Accepted == o.RecordID() {
		return "", ""
	}
	// Writes after the loss raise index and revision again, so a contradiction stays until a
	// person decides. Somebody may have changed the record since: the command must name this one.
	if c := o.Status.Condition(api.ClusterConditionAvailable); c.Reason == ReasonWentBack {
		what, _, ours := strings.Cut(strings.TrimPrefix(c.Message, mayBeLost), undecided)
		if ours && !strings.HasSuffix(c.Message, "="+o.RecordID()) {
			return c.Reason, o.wayOutOf(what)
		}
		return c.Reason, c.Message
	}
	if !o.Quorum {
		return "", ""
	}
	r := o.Record
	switch forgotten := o.forgotten(); {
	case r != nil && r.ClusterID != "" && o.Seen.ClusterID != 0 && r.ClusterID != etcd.FormatID(o.Seen.ClusterID):
		return ReasonOtherID, o.wayOutOf("the members that answer form another cluster than that of ID " + r.ClusterID)
	case len(forgotten) > 0:
		return ReasonForgotten, o.wayOutOf("the members that answer know nothing of " + strings.Join(forgotten, ", ") +
			", and no quorum on record has removed them")
	case r != nil && o.Seen.Index != 0 && int64(o.Seen.Index) < r.RaftIndex: // far from 2^63 entries
		return ReasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had committed raft index %d, and is before it now", r.RaftIndex))
	case r != nil && o.Seen.Revision != 0 && o.Seen.Revision < r.Revision:
		return ReasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had reached revision %d, and is before it now", r.Revision))
	}
	return "", ""
}

// mayBeLost and undecided enclose what a contradiction is.
const (
	mayBeLost = "data may be lost: "
	undecided = ". The operator changes nothing until this is decided. "
)

// wayOutOf completes the text of a contradiction. It must stay the same as long as the
// contradiction.
func (o *Observation) wayOutOf(what string) string {
	return mayBeLost + what + undecided + fmt.Sprintf("Bring back the nodes and volumes of the members in status.record; "+
		"or restore a backup (EtcdRestore); or, to continue with the current data and lose any other: kubectl annotate etcd %s -n %s --overwrite %s=%s",
		o.Names.Cluster, o.Names.Namespace, AcceptAnnotation, o.RecordID())
}

// forgotten names recorded members that the current membership lacks without a removal by the
// record's quorum. If enough of the record's members are left, they have agreed on the removal
// of the others, for example by etcdctl.
func (o *Observation) forgotten() []string {
	if o.Record == nil {
		return o.unknownData()
	}
	forgotten, agree := o.compareRecord(0)
	if agree {
		return nil
	}
	return forgotten
}

// QuorumOfRecordWithout reports whether the members that stay after a removal are a quorum of those on
// record, also if the record does not mark the removal. Without a record, they are.
func (o *Observation) QuorumOfRecordWithout(removed uint64) bool {
	if o.Record == nil {
		return true
	}
	_, agree := o.compareRecord(removed)
	return agree
}

// compareRecord names the members on record that the membership lacks and that nobody was to remove. agree
// is true if those that it has, but for one, are a quorum of the record.
func (o *Observation) compareRecord(without uint64) (lacking []string, agree bool) {
	expected, stay := 0, 0
	for _, m := range o.Record.Members {
		switch {
		case slices.ContainsFunc(o.Members, func(n MemberState) bool { return etcd.FormatID(n.ID) == m.ID }):
			expected++
			if m.ID != etcd.FormatID(without) {
				stay++
			}
		case !m.Removing:
			expected++
			lacking = append(lacking, cmp.Or(m.Name, "member "+m.ID))
		}
	}
	return lacking, stay >= etcd.Quorum(expected)
}

// unknownData replaces forgotten if there is no record, as after the upgrade of an operator.
// Pods and volumes that may hold data of others than the members must not be the majority.
func (o *Observation) unknownData() []string {
	var others []string
	for _, p := range o.Pods {
		if p.Started && !p.Finished && !p.Deleting && !o.IsMember(p.Name) {
			others = append(others, p.Name)
		}
	}
	for _, v := range o.Volumes {
		if !v.Deleting && !o.IsMember(v.Name) && !slices.Contains(others, v.Name) {
			others = append(others, v.Name)
		}
	}
	if len(o.Members) >= etcd.Quorum(len(o.Members)+len(others)) {
		return nil
	}
	slices.Sort(others)
	return others
}

// Recorded reports whether a member of this name is on record.
func (o *Observation) Recorded(name string) bool {
	return o.Record != nil && slices.ContainsFunc(o.Record.Members, func(m api.RecordedMember) bool { return m.Name == name })
}

// RecordID identifies the record, or the absence of one.
func (o *Observation) RecordID() string {
	if o.Record == nil {
		return manifest.ShortDigest("no record " + strings.Join(o.unknownData(), " "))
	}
	return manifest.ShortDigest(fmt.Sprint(*o.Record))
}

// heedRecord stops everything while the cluster contradicts the record: an apparently
// superfluous pod may hold the only copy of the data.
func heedRecord(o *Observation) Step {
	if _, message := o.Contradiction(); message != "" {
		return Idle{because(message)}
	}
	return nil
}

// markLasts is how long a member stays before the record no longer marks it as removing. A
// removal can time out and be committed later, so etcd's refusal alone proves nothing. Such a
// request is in the log of the leader, which a linearizable read confirms, or in a buffer of a
// voter. A voter that answers has sent it long before. The log of a former leader does not
// count: without the entries of the current one, it wins no election. Only an operator that
// froze between the mark and the request could still send one. If two members were left, the
// operator would then stop, and a person would decide. A mark that stays forever is worse:
// the loss of its member's data would count as a removal.
const markLasts = 10 * time.Minute

// stays reports whether the removal of a member that the record marks has come to nothing.
func (o *Observation) stays(id string) bool {
	since, known := o.StaysSince[id]
	return known && o.Now.Sub(since) >= markLasts
}

// FreshRecord returns the record of the current state. It marks a member before etcd removes
// it: nobody may be left afterwards to report the removal.
func (o *Observation) FreshRecord(s Step) *api.ClusterRecord {
	r := &api.ClusterRecord{RaftIndex: int64(o.Seen.Index), Revision: o.Seen.Revision} // far from 2^63 entries
	if o.Seen.ClusterID != 0 {
		r.ClusterID = etcd.FormatID(o.Seen.ClusterID)
	}
	old := o.Record
	if old == nil || o.Accepted == o.RecordID() {
		old = &api.ClusterRecord{}
	}
	r.ClusterID = cmp.Or(r.ClusterID, old.ClusterID)
	// The answering member may be a little behind the one that answered before.
	r.RaftIndex, r.Revision = max(r.RaftIndex, old.RaftIndex), max(r.Revision, old.Revision)
	removal, _ := s.(RemoveMember)
	for _, m := range o.Members {
		id := etcd.FormatID(m.ID)
		before := slices.IndexFunc(old.Members, func(n api.RecordedMember) bool { return n.ID == id })
		r.Members = append(r.Members, api.RecordedMember{
			ID: id, Name: cmp.Or(m.PodName, m.Name),
			Removing: removal.ID == m.ID || before >= 0 && old.Members[before].Removing && !o.stays(id),
		})
	}
	r.LastUpdateTime = o.Now.UTC().Format(time.RFC3339)
	return r
}
