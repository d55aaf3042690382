// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
)

// mostBackupWrites bounds the writes of the operators of backups and restores in a minute.
const mostBackupWrites = 120

// floorKey names an attempt: the store keeps its beginning with the object.
func floorKey(uid, started string) string { return uid + " " + started }

// reports checks what a backup operator writes to the status of an EtcdBackup.
func (b *backups) reports(old, next *api.EtcdBackup) {
	was, st := &old.Status, &next.Status
	if st.Phase == api.BackupPhaseRunning && st.LastExecutionDate != nil && !st.LastExecutionDate.Equal(was.LastExecutionDate) {
		floor := map[string]int{}
		for _, c := range b.w.clients {
			floor[c.name] = c.acked
		}
		key := floorKey(string(next.UID), st.LastExecutionDate.UTC().Format(time.RFC3339))
		if b.floors[key] == nil {
			b.floors[key] = floor
		}
	}
	if !st.Succeeded || was.Succeeded && was.Key == st.Key && was.LastSuccessDate.Equal(st.LastSuccessDate) {
		return
	}
	b.stored++
	key := strings.TrimPrefix(st.Key, "bucket/")
	b.w.narrate("status", "EtcdBackup %s succeeded: %s, uncertain %t", next.Name, st.Key, st.Uncertain)
	o := b.bucket.objects[key]
	switch {
	case o == nil && (b.lost[key] || b.vanished[key]), o != nil && o.lie:
		return // the store has lied
	case o == nil:
		b.w.fail("EtcdBackup %s reports the success of %s, which the store does not have", next.Name, key)
		return
	}
	content := b.taken[digestOf(o.content)]
	if content == nil {
		b.w.fail("EtcdBackup %s reports the success of %s, which is not whole", next.Name, key)
		return
	}
	if st.SHA256 != "" && st.SHA256 != digestOf(o.content) {
		b.w.fail("EtcdBackup %s reports another SHA-256 than that of %s", next.Name, key)
	}
	state, err := decodeState(content)
	must(err)
	floor := b.floors[floorKey(string(next.UID), o.Metadata[backupobject.MetaStarted])]
	for name, acked := range floor {
		if state.Data[name] < acked && !st.Uncertain && !b.w.rolledBack {
			b.w.fail("EtcdBackup %s: %s lacks a write that was acknowledged before it began: %s is %d, and was %d", next.Name, key, name, state.Data[name], acked)
		}
	}
	if floor == nil {
		b.w.fail("EtcdBackup %s reports %s, and no status said that it began", next.Name, key)
	}
}

// madeAt is when an object was made, by its name or the store.
func madeAt(o *object, path string) time.Time {
	_, begun, ok := backupobject.ParseKey(path, o.Key)
	if ok && begun.Before(o.Modified) {
		return begun
	}
	return o.Modified
}

// deletes checks a deletion from the store.
func (b *backups) deletes(o *operator, key string) {
	victim := b.bucket.objects[key]
	if victim == nil {
		return
	}
	b.w.narrate(o.name, "deletes %s", key)
	s := b.saved(scheduledName)
	path := strings.TrimPrefix(scheduledPath, "bucket/")
	switch {
	case s == nil || victim.Metadata[backupobject.MetaUID] != string(s.UID):
		b.w.fail("%s is deleted, which the EtcdBackup has not made", key)
		return
	case s.Spec.BackupPolicy.MaxBackups == 0:
		b.w.fail("%s is deleted, and no limit asks for it", key)
		return
	}
	newer := 0
	for _, other := range b.bucket.objects {
		if other == victim || other.Metadata[backupobject.MetaUID] != string(s.UID) || backupobject.Uncertain(other.Metadata) {
			continue
		}
		if !madeAt(other, path).Before(madeAt(victim, path)) {
			newer++
		}
	}
	limit := s.Spec.BackupPolicy.MaxBackups
	if b.lagged || len(b.vanished) > 0 || len(b.lost) > 0 {
		limit = 1 // a list may show objects that are gone
	}
	if newer < limit && !backupobject.Uncertain(victim.Metadata) {
		b.w.fail("%s is deleted: only %d backups are newer, and %d are to be kept", key, newer, s.Spec.BackupPolicy.MaxBackups)
	}
}

// restoreReports checks what a restore operator writes to the status of an EtcdRestore.
func (b *backups) restoreReports(old, next *api.EtcdRestore) {
	st := &next.Status
	if st.Phase != old.Status.Phase {
		b.w.narrate("status", "EtcdRestore is %s: %s", st.Phase, st.Reason)
		switch st.Phase {
		case api.RestorePhaseVerifying:
			b.searched = time.Now()
		case api.RestorePhaseFailed:
			b.givesUp(next)
		}
	}
	if st.Backup != nil && committed(next) && (old.Status.Backup == nil || old.Status.Backup.SHA256 != st.Backup.SHA256) {
		switch {
		case b.taken[st.Backup.SHA256] == nil:
			b.w.fail("the restore begins with %s, which is not whole", st.Backup.Key)
		case !b.read[st.Backup.SHA256]:
			b.w.fail("the restore begins with %s, which it has not read", st.Backup.Key)
		}
		b.named(next)
	}
	if least := b.w.checks.atLeast; least > 0 && committed(next) && !committed(old) {
		b.w.checks.atLeast = 0
		state, err := decodeState(b.taken[st.Backup.SHA256])
		must(err)
		if b.w.narrate("status", "the recovery continues from revision %d", state.Revision); state.Revision < least {
			b.w.fail("the cluster continues from revision %d, and a survivor had %d", state.Revision, least)
		}
	}
	if !st.Succeeded || old.Status.Succeeded {
		return
	}
	state, err := decodeState(b.taken[st.Backup.SHA256])
	must(err)
	var newest *machine
	for _, n := range b.w.nodes {
		for _, r := range n.sorted() {
			if r.proc == nil || !r.proc.serving {
				continue
			}
			if h := b.w.histories[r.proc.clusterID]; h.restored && !h.replaced && (newest == nil || r.proc.machine.revision > newest.revision) {
				newest = r.proc.machine
			}
		}
	}
	if newest == nil { // at worst all of them have just lost power
		for _, d := range b.w.disks {
			if h := b.w.histories[diskCluster(d)]; h != nil && h.restored && !h.replaced {
				return
			}
		}
		b.w.fail("the restore reports success, and no member holds the data of a restored cluster")
		return
	}
	for name, value := range state.Data {
		if newest.data[name] < value {
			b.w.fail("the restore reports success, and the cluster lacks what the backup holds of %s", name)
		}
	}
}

// givesUp checks that a restore gives up only if the store had no good backup when it began to
// look. Good ones that come later change nothing: a person makes another EtcdRestore.
func (b *backups) givesUp(r *api.EtcdRestore) {
	good := b.wholeSince(r, b.searched)
	if b.hopeless = good == ""; !b.hopeless && !b.lagged {
		b.w.fail("the restore gives up, and the store has had %s since it began to look: %s", good, r.Status.Reason)
	}
}

// named checks that the status names each damaged backup that the restore has read before it
// chose an older one.
func (b *backups) named(r *api.EtcdRestore) {
	path := strings.TrimPrefix(scheduledPath, "bucket/")
	chosen := b.bucket.objects[strings.TrimPrefix(r.Status.Backup.Key, "bucket/")]
	if !r.Spec.Newest() || chosen == nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(b.bucket.objects)) {
		o := b.bucket.objects[key]
		digest := digestOf(o.content)
		if _, _, ours := backupobject.ParseKey(path, key); !ours || b.taken[digest] != nil || !b.read[digest] || !madeAt(o, path).After(madeAt(chosen, path)) {
			continue
		}
		if !strings.Contains(strings.Join(r.Status.PassedOver, " "), key) {
			b.w.fail("the restore has found %s damaged, and its status does not say so", key)
		}
	}
}

// destroys checks what a restore operator deletes. It returns false for other processes.
func (b *backups) destroys(o *operator, resource string, obj metav1.Object) bool {
	if b == nil || !slices.Contains(b.restorers, o) {
		return false
	}
	b.w.narrate(o.name, "deletes %s/%s", resource, obj.GetName())
	r := b.restoration()
	switch obj := obj.(type) {
	case *api.EtcdCluster, *corev1.Pod:
		if !committed(r) || r.Status.Backup == nil || b.taken[r.Status.Backup.SHA256] == nil {
			b.w.fail("the restore operator deletes %s %s, and no whole backup is on record", resource, obj.GetName())
			return true
		}
	case *corev1.PersistentVolumeClaim:
		d := b.w.disks["volume "+string(obj.UID)]
		allowed := r != nil && (r.Annotations[api.RestoredAnnotation] != "" || committed(r) && r.Spec.EffectiveOldVolumes() == api.OldVolumesDeleteFirst)
		if d.hasData() && !allowed {
			b.w.fail("the restore operator deletes the volume %s before the cluster is back", obj.Name)
		}
		if h := b.w.histories[diskCluster(d)]; h != nil && !h.replaced {
			b.w.fail("the restore operator deletes the volume %s of a cluster that it does not replace", obj.Name)
		}
	}
	if _, is := obj.(*api.EtcdCluster); is {
		b.w.impaired()
		for _, h := range b.w.histories {
			h.replaced = true
		}
	}
	return true
}

func diskCluster(d *disk) uint64 {
	if !d.hasData() {
		return 0
	}
	return d.clusterID
}

// wrote counts a write to the API server.
func (b *backups) wrote(_ *operator, r *request) {
	if r.shelf.kind.resource != "events" && r.shelf.kind.resource != "leases" {
		b.writes++
	}
}

func (b *backups) minute() {
	b.mostWrote = max(b.mostWrote, b.writes)
	if b.writes > mostBackupWrites {
		b.w.fail("%d writes of the operators of backups and restores in a minute", b.writes)
	}
	b.writes = 0
}
