// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"go.etcd.io/raft/v3"
)

// copyDisks copies the members' data on the disks of nodes at this moment.
func (w *world) copyDisks(nodes []*node) map[*disk]*raft.MemoryStorage {
	copies := map[*disk]*raft.MemoryStorage{}
	for _, n := range nodes {
		for _, r := range n.sorted() {
			if r.pod == nil || r.ended || inMemory(r.pod) || r.diskKey() == "" {
				continue
			}
			if d := w.disks[r.diskKey()]; d.hasData() {
				copies[d] = copyOf(d.log)
			}
		}
	}
	return copies
}

func copyOf(log *raft.MemoryStorage) *raft.MemoryStorage {
	c := raft.NewMemoryStorage()
	hard, _, err := log.InitialState()
	must(err)
	first, err := log.FirstIndex()
	must(err)
	last, err := log.LastIndex()
	must(err)
	snap, err := log.Snapshot()
	must(err)
	if !raft.IsEmptySnap(snap) {
		must(c.ApplySnapshot(snap))
		first = max(first, snap.GetMetadata().GetIndex()+1)
	}
	must(c.SetHardState(hard))
	if first <= last {
		entries, err := log.Entries(first, last+1, 1<<62)
		must(err)
		must(c.Append(entries))
	}
	return c
}

// rollBack restores earlier contents of unused disks. Raft promises nothing then: writes may
// be lost, and two members may have voted twice. The operator must notice that the remaining
// data are older than the recorded ones.
func (w *world) rollBack(old map[*disk]*raft.MemoryStorage) {
	done := false
	inUse := map[*disk]bool{} // another pod of the volume may have begun to run elsewhere
	for _, n := range w.nodes {
		for _, r := range n.sorted() {
			if r.proc != nil && !r.proc.stopped {
				inUse[r.proc.disk] = true
			}
		}
	}
	for _, n := range w.nodes {
		for _, r := range n.sorted() {
			if r.pod == nil || r.proc != nil || r.diskKey() == "" {
				continue
			}
			d := w.disks[r.diskKey()]
			if log := old[d]; d.hasData() && log != nil && !inUse[d] {
				d.log = copyOf(log)
				done = true
			}
		}
	}
	if !done {
		return
	}
	w.rolledBack, w.wiped = true, true
	obj, h := w.api.cluster(), w.current()
	if obj == nil || obj.Status.Record == nil || h == nil || w.checks.accepted || w.hampers() {
		return
	}
	var last uint64
	for _, d := range w.disks {
		if d.hasData() && w.histories[d.clusterID] == h {
			i, err := d.log.LastIndex()
			must(err)
			last = max(last, i)
		}
	}
	if last > 0 && int64(last) < obj.Status.Record.RaftIndex { // far from 2^63 entries
		w.wentBack = true
	}
}
