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

// AcceptAnnotation on an EtcdCluster is a person's word that what is there counts
// from now on, whatever is on record. Its value names the record that it overrules:
// it says nothing about a later one.
const AcceptAnnotation = api.OperatorAnnotations + "accept-data"

// The reasons of Available where the cluster contradicts the record.
const (
	ReasonForgotten = "Members forgotten"
	ReasonOtherID   = "Cluster ID changed"
	ReasonWentBack  = "Data went back"
)

// Contradiction says how the cluster contradicts the record, with the reason of
// Available; "" if it does not, or if a person has accepted that. A cluster that
// keeps its data keeps its ID, its index and its revision, and forgets no members
// but those that a quorum of it removes. Only what a quorum answers counts here: one
// member may lag behind.
func (o *Observation) Contradiction() (reason, message string) {
	if o.Status.Phase == api.ClusterPhaseCreating || o.Accepted != "" && o.Accepted == o.RecordID() {
		return "", ""
	}
	// Writes that come after the loss raise index and revision again, so that this one
	// stays until a person decides.
	if c := ConditionFor(&o.Status, api.ClusterConditionAvailable); c.Reason == ReasonWentBack {
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
	case r != nil && o.Seen.Index != 0 && int64(o.Seen.Index) < r.RaftIndex: //nolint:gosec // far from 2^63 entries
		return ReasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had committed raft index %d, and is before it now", r.RaftIndex))
	case r != nil && o.Seen.Revision != 0 && o.Seen.Revision < r.Revision:
		return ReasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had reached revision %d, and is before it now", r.Revision))
	}
	return "", ""
}

// wayOutOf completes what a contradiction says. It must stay the same as long as the
// contradiction does.
func (o *Observation) wayOutOf(what string) string {
	return fmt.Sprintf("data may be lost: %s. The operator changes nothing until this is decided. Bring back the nodes and volumes of the members in status.record; "+
		"or restore a backup (EtcdRestore); or, to go on with the data that is there and to lose any other: kubectl annotate etcd %s -n %s --overwrite %s=%s",
		what, o.Names.Cluster, o.Names.Namespace, AcceptAnnotation, o.RecordID())
}

// forgotten names members that a quorum of the record has not removed and the
// membership of now does not hold. Where enough of the record's members are left, they
// are the ones that agreed on the removal of the others, as by etcdctl.
func (o *Observation) forgotten() []string {
	if o.Record == nil {
		return o.unknownData()
	}
	var forgotten []string
	expected, stay := 0, 0
	for _, m := range o.Record.Members {
		switch {
		case slices.ContainsFunc(o.Members, func(n MemberState) bool { return etcd.FormatID(n.ID) == m.ID }):
			expected++
			stay++
		case !m.Removing:
			expected++
			forgotten = append(forgotten, cmp.Or(m.Name, "member "+m.ID))
		}
	}
	if stay >= etcd.Quorum(expected) {
		return nil
	}
	return forgotten
}

// unknownData stands for forgotten where nothing is on record, as after the upgrade
// of an operator: pods and volumes that may hold data of others than the members must
// not be the majority.
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

// RecordID identifies the record, and what stands in for it where there is none.
func (o *Observation) RecordID() string {
	if o.Record == nil {
		return manifest.ShortDigest("no record " + strings.Join(o.unknownData(), " "))
	}
	return manifest.ShortDigest(fmt.Sprint(*o.Record))
}

// heedRecord stops everything while the cluster contradicts the record: what looks
// like a pod too many may hold the only copy of the data.
func heedRecord(o *Observation) Step {
	if _, message := o.Contradiction(); message != "" {
		return Idle{because(message)}
	}
	return nil
}

// FreshRecord is the record of what is seen now. A member that is about to be removed
// is marked before etcd is asked: nobody may be left afterwards to tell of it.
func (o *Observation) FreshRecord(s Step) *api.ClusterRecord {
	r := &api.ClusterRecord{RaftIndex: int64(o.Seen.Index), Revision: o.Seen.Revision} //nolint:gosec // far from 2^63 entries
	if o.Seen.ClusterID != 0 {
		r.ClusterID = etcd.FormatID(o.Seen.ClusterID)
	}
	old := o.Record
	if old == nil || o.Accepted == o.RecordID() {
		old = &api.ClusterRecord{}
	}
	r.ClusterID = cmp.Or(r.ClusterID, old.ClusterID)
	// The member that tells may be a little behind another that told before.
	r.RaftIndex, r.Revision = max(r.RaftIndex, old.RaftIndex), max(r.Revision, old.Revision)
	removal, _ := s.(RemoveMember)
	for _, m := range o.Members {
		id := etcd.FormatID(m.ID)
		before := slices.IndexFunc(old.Members, func(n api.RecordedMember) bool { return n.ID == id })
		r.Members = append(r.Members, api.RecordedMember{
			ID: id, Name: cmp.Or(m.PodName, m.Name),
			Removing: removal.ID == m.ID || before >= 0 && old.Members[before].Removing,
		})
	}
	r.LastUpdateTime = o.Now.UTC().Format(time.RFC3339)
	return r
}

// ConditionFor is the condition of a type; zero if there is none.
func ConditionFor(st *api.ClusterStatus, t api.ClusterConditionType) api.ClusterCondition {
	for _, c := range st.Conditions {
		if c.Type == t {
			return c
		}
	}
	return api.ClusterCondition{}
}
