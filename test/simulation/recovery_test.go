// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// recoverSpec sets automatic recovery, with the shortest patience and a wide bound: only the
// members that may return are then in its way.
func (w *world) recoverSpec(obj *api.EtcdCluster) {
	l := w.life
	if l.backups || l.imports || l.storms > 0 || w.aim != nil || !l.chance(0.2, "recovers") {
		return
	}
	patience := int64(60)
	obj.Spec.Recovery = &api.RecoveryPolicy{Mode: api.RecoveryAutomatic, PatienceInSecond: &patience, MaxLostRevisions: 1 << 40}
}

// recoverStore makes the EtcdBackup whose store would take the data of a survivor. No backup
// operator runs, and no container that serves the data of a survivor, so a recovery ends there.
func (w *world) recoverStore(obj *api.EtcdCluster) {
	if !obj.Spec.RecoversAutomatically() {
		return
	}
	w.narrate("world", "the operator recovers automatically")
	store := &api.EtcdBackup{ObjectMeta: w.meta(scheduledName, "00000000-0000-4000-8000-bbbbbbbbbbbb")}
	store.Spec.EtcdCluster = &api.EtcdClusterRef{Name: clusterName}
	store.Spec.StorageType = api.BackupStorageTypeS3
	store.Spec.S3 = &api.S3BackupSource{Path: scheduledPath}
	w.api.put(w.api.shelves["etcdbackups"], store)
}

// recovers checks the first object of an automatic recovery: the voters that still have their data
// must not be enough for a quorum.
func (c *checks) recovers(o *operator, made string) {
	h := c.w.current()
	if o == nil || h == nil {
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
