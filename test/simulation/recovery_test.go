// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// recoverSpec sets automatic recovery, with the shortest patience and a wide bound: only the
// members that may return are then in its way.
func (w *world) recoverSpec(obj *api.EtcdCluster) {
	l := w.life
	if l.imports || l.storms > 0 || w.aim != nil || !l.chance(map[bool]float64{false: 0.2, true: 0.5}[l.backups], "recovers") {
		return
	}
	patience, unseen := int64(60), int64(365*24*3600)
	obj.Spec.Recovery = &api.RecoveryPolicy{Mode: api.RecoveryAutomatic, PatienceInSecond: &patience, MaxLostRevisions: 1 << 40}
	if l.backups {
		obj.Spec.Recovery.MaxLostInSecond = &unseen
	}
}

// recoverStore makes the EtcdBackup whose store would take the data of a survivor. Without a backup
// operator, a recovery ends there.
func (w *world) recoverStore(obj *api.EtcdCluster) {
	if !obj.Spec.RecoversAutomatically() {
		return
	}
	w.narrate("world", "the operator recovers automatically")
	if w.backups != nil {
		return // a person makes it
	}
	store := &api.EtcdBackup{ObjectMeta: w.meta(scheduledName, "00000000-0000-4000-8000-bbbbbbbbbbbb")}
	store.Spec.EtcdCluster = &api.EtcdClusterRef{Name: clusterName}
	store.Spec.StorageType = api.BackupStorageTypeS3
	store.Spec.S3 = &api.S3BackupSource{Path: scheduledPath}
	w.api.put(w.api.shelves["etcdbackups"], store)
}

// disaster is the loss of a majority: somebody deletes the pods and the volumes of as many members.
func (w *world) disaster() *fault {
	l := w.life
	f := &fault{at: stormBegins + l.between(stormLasts/2, stormLasts, "disaster at")}
	f.id = fmt.Sprintf("somebody deletes the pods and volumes of a majority at %s", f.at.Round(time.Millisecond))
	f.begin = func() {
		h := w.current()
		if h == nil || len(h.machine.voters()) < 2 {
			return
		}
		voters := h.machine.voters()
		for i := range len(voters) - etcd.Quorum(len(voters)) + 1 {
			name := w.hostOf(h.machine.members[voters[(uint64(i)+l.number("disaster"))%uint64(len(voters))]].url)
			w.narrate("fault", "%s is deleted, and its volume", name)
			for _, resource := range []string{"pods", "persistentvolumeclaims"} {
				if s := w.api.shelves[resource]; s.objects[storedKey(namespace, name)] != nil {
					w.api.remove(s, storedKey(namespace, name), new(int64))
				}
			}
		}
		w.wiped = true
	}
	return f
}

// chooses notes what the members that serve hold, when the operator makes the EtcdRestore of a recovery.
func (c *checks) chooses(o *operator) {
	h := c.w.current()
	if !c.isOurs(o) || h == nil {
		return
	}
	c.atLeast = 0
	for _, info := range h.machine.members {
		m := c.w.memberAt(info.url)
		if m == nil || m.id != info.id || !m.serving || m.stopped {
			continue
		}
		// Nobody knows of a process whose pod somebody has deleted by force.
		pod := c.w.api.pod(m.run.name)
		if pod != nil && pod.UID == m.run.uid && c.w.reachable(o.place, m.run.node.name) && c.w.reachable(m.run.node.name, o.place) {
			c.atLeast = max(c.atLeast, m.machine.revision)
		}
	}
	c.w.narrate(o.name, "recovers: it makes the EtcdRestore; survivors hold revision %d", c.atLeast)
}

// recovers checks the first object of an automatic recovery: the voters that still have their data
// must not be enough for a quorum.
func (c *checks) recovers(o *operator, made string) {
	h := c.w.current()
	if !c.isOurs(o) || h == nil {
		return
	}
	c.w.narrate(o.name, "recovers: it makes %s", made)
	voters, holders := h.machine.voters(), map[uint64]bool{}
	note := func(d *disk) {
		if id, of := c.memberOf(d); of == h && slices.Contains(voters, id) {
			holders[id] = true
		}
	}
	for _, s := range c.w.api.shelves["pods"].objects {
		note(c.w.disks[c.w.diskKeyOf(s.obj.(*corev1.Pod))])
	}
	for _, s := range c.w.api.shelves["persistentvolumeclaims"].objects {
		note(c.w.disks["volume "+string(s.obj.GetUID())])
	}
	if len(holders) >= etcd.Quorum(len(voters)) {
		c.w.fail("the operator recovers from a survivor, and %d of %d voters have their data", len(holders), len(voters))
	}
}
