// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// modelWipes is the part of the model in which nodes return with empty disks while the pods'
// objects survive. Pods of earlier operators have no guard. There the seed starts empty, with
// its old ID, and is a quorum of one as long as there is no other. Clients lose no write: the
// remaining disks are a quorum. The operator must not delete their pods, which model.apply
// checks.
type modelWipes struct {
	guarded bool
	empty   string // the seed that runs empty
}

// trouble cuts the power of all nodes. Of emptyDirs, as many are wiped as leave a
// quorum of the disks.
func (w *modelWipes) trouble(m *model) {
	all, alive := m.voters()
	if m.rand.IntN(6) > 0 || alive < all || m.waitingVoter() || len(m.members) != all {
		return
	}
	spare := all - etcd.Quorum(all)
	m.note("!! the power is cut")
	for _, mm := range m.members {
		p := m.pods[mm.name]
		p.running = false
		if spare > 0 && m.volumes[mm.name] == nil && (w.guarded || p.Seed) && m.rand.IntN(2) == 0 {
			spare--
			p.wiped = m.now
			m.note("!! the disk of %s is wiped", mm.name)
		}
	}
}

// start is the start of a pod whose disk was wiped. check-dns lets a member without
// data go only where nobody knows that it has served.
func (w *modelWipes) start(m *model, name string) {
	p := m.pods[name]
	if w.guarded && p.noted || !p.Seed || m.quorum() {
		// Among the others etcd ends at once: what it has promised is not in its log.
		if w.empty == name {
			w.empty = ""
		}
		return
	}
	if w.empty == "" {
		m.note("!! %s starts empty", name)
	}
	w.empty = name
}

// observe shows the operator the empty seed, where that is a quorum.
func (w *modelWipes) observe(m *model, o *plan.Observation) {
	i := slices.IndexFunc(m.members, func(mm modelMember) bool { return mm.name == w.empty })
	if w.empty == "" || i < 0 || m.pods[w.empty] == nil || m.quorum() {
		return
	}
	pod := o.Pod(w.empty)
	pod.Running, pod.Ready = true, true
	id := m.members[i].id
	o.Quorum = true
	o.Seen = plan.Testimony{ClusterID: 1, Index: 4, Revision: 1}
	o.Members = []plan.MemberState{{
		Member: etcd.Member{ID: id, Name: w.empty, PeerURLs: []string{o.Names.PeerURL(w.empty)}}, PodName: w.empty, Pod: pod,
		Status: &etcd.Status{MemberID: id, LeaderID: id, Version: pod.Version, RaftIndex: 4, RaftApplied: 4},
	}}
}

// calm is a person who follows what the status says: pods without their data go.
func (w *modelWipes) calm(m *model) {
	w.empty = ""
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		if p := m.pods[name]; !p.wiped.IsZero() {
			p.wiped = p.wiped.Add(-time.Hour)
			delete(m.pods, name)
		}
	}
}
