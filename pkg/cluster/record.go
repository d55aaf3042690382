// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// acceptAnnotation on an EtcdCluster is a person's word that what is there counts
	// from now on, whatever is on record. Its value names the record that it overrules:
	// it says nothing about a later one.
	acceptAnnotation = operatorAnnotations + "accept-data"

	// recordInterval is the least time between two writes of the record for the raft
	// index and the revision alone.
	recordInterval = 5 * time.Minute
)

// The reasons of Available where the cluster contradicts the record.
const (
	reasonForgotten = "Members forgotten"
	reasonOtherID   = "Cluster ID changed"
	reasonWentBack  = "Data went back"
)

// testimony is what the member through which a quorum answered says of its data,
// at or after that answer. Zero values are not known.
type testimony struct {
	clusterID, index uint64
	revision         int64
}

// contradiction says how the cluster contradicts the record, with the reason of
// Available; "" if it does not, or if a person has accepted that. A cluster that
// keeps its data keeps its ID, its index and its revision, and forgets no members
// but those that a quorum of it removes. Only what a quorum answers counts here: one
// member may lag behind.
func (o *observation) contradiction() (reason, message string) {
	if o.status.Phase == api.ClusterPhaseCreating || o.accepted != "" && o.accepted == o.recordID() {
		return "", ""
	}
	// Writes that come after the loss raise index and revision again, so that this one
	// stays until a person decides.
	if c := conditionFor(&o.status, api.ClusterConditionAvailable); c.Reason == reasonWentBack {
		return c.Reason, c.Message
	}
	if !o.quorum {
		return "", ""
	}
	r := o.record
	switch forgotten := o.forgotten(); {
	case r != nil && r.ClusterID != "" && o.seen.clusterID != 0 && r.ClusterID != etcd.FormatID(o.seen.clusterID):
		return reasonOtherID, o.wayOutOf("the members that answer form another cluster than that of ID " + r.ClusterID)
	case len(forgotten) > 0:
		return reasonForgotten, o.wayOutOf("the members that answer know nothing of " + strings.Join(forgotten, ", ") +
			", and no quorum on record has removed them")
	case r != nil && o.seen.index != 0 && int64(o.seen.index) < r.RaftIndex: //nolint:gosec // far from 2^63 entries
		return reasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had committed raft index %d, and is before it now", r.RaftIndex))
	case r != nil && o.seen.revision != 0 && o.seen.revision < r.Revision:
		return reasonWentBack, o.wayOutOf(fmt.Sprintf("a quorum had reached revision %d, and is before it now", r.Revision))
	}
	return "", ""
}

// wayOutOf completes what a contradiction says. It must stay the same as long as the
// contradiction does.
func (o *observation) wayOutOf(what string) string {
	return fmt.Sprintf("data may be lost: %s. The operator changes nothing until this is decided. Bring back the nodes and volumes of the members in status.record; "+
		"or restore a backup (EtcdRestore); or, to go on with the data that is there and to lose any other: kubectl annotate etcd %s -n %s --overwrite %s=%s",
		what, o.names.cluster, o.names.namespace, acceptAnnotation, o.recordID())
}

// forgotten names members that a quorum of the record has not removed and the
// membership of now does not hold. Where enough of the record's members are left, they
// are the ones that agreed on the removal of the others, as by etcdctl.
func (o *observation) forgotten() []string {
	if o.record == nil {
		return o.unknownData()
	}
	var forgotten []string
	expected, stay := 0, 0
	for _, m := range o.record.Members {
		switch {
		case slices.ContainsFunc(o.members, func(n memberState) bool { return etcd.FormatID(n.ID) == m.ID }):
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
func (o *observation) unknownData() []string {
	var others []string
	for _, p := range o.pods {
		if p.started && !p.finished && !p.deleting && !o.isMember(p.name) {
			others = append(others, p.name)
		}
	}
	for _, v := range o.volumes {
		if !v.deleting && !o.isMember(v.name) && !slices.Contains(others, v.name) {
			others = append(others, v.name)
		}
	}
	if len(o.members) >= etcd.Quorum(len(o.members)+len(others)) {
		return nil
	}
	slices.Sort(others)
	return others
}

// recordID identifies the record, and what stands in for it where there is none.
func (o *observation) recordID() string {
	if o.record == nil {
		return shortDigest("no record " + strings.Join(o.unknownData(), " "))
	}
	return shortDigest(fmt.Sprint(*o.record))
}

// heedRecord stops everything while the cluster contradicts the record: what looks
// like a pod too many may hold the only copy of the data.
func heedRecord(o *observation) step {
	if _, message := o.contradiction(); message != "" {
		return idle{message}
	}
	return nil
}

// setRecord records what a quorum agrees on. A record that is contradicted stays.
func setRecord(st *api.ClusterStatus, o *observation, s step) {
	switch reason, _ := o.contradiction(); {
	case reason != "":
		st.Record = o.record
	case o.quorum && st.Phase == api.ClusterPhaseRunning:
		st.Record = o.freshRecord(s)
	}
}

// freshRecord is the record of what is seen now. A member that is about to be removed
// is marked before etcd is asked: nobody may be left afterwards to tell of it.
func (o *observation) freshRecord(s step) *api.ClusterRecord {
	r := &api.ClusterRecord{RaftIndex: int64(o.seen.index), Revision: o.seen.revision} //nolint:gosec // far from 2^63 entries
	if o.seen.clusterID != 0 {
		r.ClusterID = etcd.FormatID(o.seen.clusterID)
	}
	old := o.record
	if old == nil || o.accepted == o.recordID() {
		old = &api.ClusterRecord{}
	}
	r.ClusterID = cmp.Or(r.ClusterID, old.ClusterID)
	// The member that tells may be a little behind another that told before.
	r.RaftIndex, r.Revision = max(r.RaftIndex, old.RaftIndex), max(r.Revision, old.Revision)
	removal, _ := s.(removeMember)
	for _, m := range o.members {
		id := etcd.FormatID(m.ID)
		before := slices.IndexFunc(old.Members, func(n api.RecordedMember) bool { return n.ID == id })
		r.Members = append(r.Members, api.RecordedMember{
			ID: id, Name: cmp.Or(m.name, m.Name),
			Removing: removal.id == m.ID || before >= 0 && old.Members[before].Removing,
		})
	}
	r.LastUpdateTime = o.now.UTC().Format(time.RFC3339)
	return r
}

// keepRecord keeps the index and the revision that are on record while nothing else
// is new and they were written a short time ago, or have not moved.
func keepRecord(st *api.ClusterStatus, old *api.ClusterRecord, now time.Time) {
	r := st.Record
	if r == nil || old == nil || r.ClusterID != old.ClusterID || !slices.Equal(r.Members, old.Members) {
		return
	}
	written, err := time.Parse(time.RFC3339, old.LastUpdateTime)
	moved := r.RaftIndex != old.RaftIndex || r.Revision != old.Revision
	if moved && (err != nil || now.Sub(written) >= recordInterval) {
		return
	}
	st.Record = old
}

// remember keeps in memory what was seen, which is newer than what is on record.
func (c *Cluster) remember(o *observation, s step, st *api.ClusterStatus) {
	if reason, _ := o.contradiction(); reason == "" && o.quorum && st.Phase == api.ClusterPhaseRunning {
		c.memory = o.freshRecord(s)
	}
}

// forgetOther drops what is remembered where somebody else has changed the record,
// also by taking it away; an API server that does not keep it is no such person.
func (c *Cluster) forgetOther(st *api.ClusterStatus) {
	if !c.dropsRecord && !sameRecord(st.Record, c.status.Record) {
		c.memory = nil
	}
}

func sameRecord(a, b *api.ClusterRecord) bool {
	if a == nil || b == nil {
		return a == b
	}
	return fmt.Sprint(*a) == fmt.Sprint(*b)
}

// testify takes down what the member through which a quorum answered says. It was
// asked how it is before it answered for the quorum, and may have lagged behind then:
// where it seems to contradict the record, it is asked once more.
func (o *observation) testify(ctx context.Context, through answer) {
	take := func(s etcd.Status) { o.seen = testimony{s.ClusterID, s.RaftIndex, s.Revision} }
	take(*through.status)
	if r := o.record; r == nil || int64(o.seen.index) >= r.RaftIndex && o.seen.revision >= r.Revision { //nolint:gosec // far from 2^63 entries
		return
	}
	status, err := within(ctx, statusTimeout, through.conn.Status)
	if err != nil || status.MemberID != through.status.MemberID {
		o.seen.index, o.seen.revision = 0, 0
		return
	}
	take(status)
}
