// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/backup"
	"github.com/etcd-operator/etcd-operator/pkg/controller/restore"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

const (
	scheduledName, onceName = "scheduled", "once"
	scheduledPath, oncePath = "bucket/etcd", "bucket/once"
)

// backups is the part of the world that makes and restores backups.
type backups struct {
	w         *world
	bucket    *bucket
	savers    []*operator // processes of the backup operator
	restorers []*operator // and of the restore operator
	listeners map[*operator]*pipes
	serving   *operator // the restore operator that the Service leads to
	pullers   []*operator
	pair      bool
	taken     map[string][]byte         // all snapshots, by their SHA-256
	floors    map[string]map[string]int // what was acknowledged when an attempt began
	read      map[string]bool           // the SHA-256 of what restore operators have read
	lagged    bool                      // lists of the store have lagged
	searched  time.Time                 // when the restore began to look for a backup
	hopeless  bool                      // the restore gave up when there was no good backup
	former    bool                      // the backup that is made once failed in an earlier release
	lost      map[string]bool           // keys that the store has confirmed, and does not have
	vanished  map[string]bool           // keys that somebody else deleted
	stored    int                       // successes
	writes    int                       // in this minute
	mostWrote int
	stormEnd  time.Time
}

func newBackups(w *world) *backups {
	return &backups{
		w: w, bucket: &bucket{w: w, objects: map[string]*object{}}, listeners: map[*operator]*pipes{},
		taken: map[string][]byte{}, floors: map[string]map[string]int{}, lost: map[string]bool{}, read: map[string]bool{}, vanished: map[string]bool{},
		pair: w.life.chance(0.3, "pair of helpers"),
	}
}

// beginBackups starts the operators of backups and restores.
func (w *world) beginBackups() {
	b := w.backups
	if b == nil {
		return
	}
	names := []string{""}
	if b.pair {
		names = append(names, "-2")
	}
	for i, suffix := range names {
		w.after(time.Duration(i)*3*time.Second, func() {
			b.startSaver("backup-operator" + suffix)
			b.startRestorer("restore-operator" + suffix)
		})
	}
	w.every(time.Minute, time.Minute, b.minute)
	w.after(w.life.between(10*time.Second, time.Minute, "schedule at"), b.schedule)
	if w.life.chance(0.6, "once") {
		w.after(w.life.between(30*time.Second, 5*time.Minute, "once at"), b.once)
	}
}

// endBackups ends what the processes leave behind.
func (w *world) endBackups() {
	if w.backups == nil {
		return
	}
	for _, p := range w.backups.pullers {
		p.stop()
	}
}

// startSaver starts the real backup controller.
func (b *backups) startSaver(name string) {
	w := b.w
	o := &operator{w: w, name: name, place: name, kin: &b.savers}
	o.again = func() { b.startSaver(name) }
	w.launch(o, program{component: "etcd-backup-operator", elects: b.pair, make: func(o *operator, t tools) (interface{ Run(context.Context) error }, error) {
		return backup.New(backup.Config{
			Namespace: namespace, Version: "1.0.0",
			Kube: t.kube, Etcd: t.etcds, Dynamic: t.dynamic, CRDs: t.crds,
			Recorder: t.recorder, Registry: prometheus.NewRegistry(), Logger: t.logger, Clock: t.clock,
			Members: o.members,
			OpenLocation: func(_ context.Context, _ string, spec *api.BackupSpec) (*location.Location, error) {
				return b.bucket.at(o, spec.Path())
			},
		})
	}})
}

// startRestorer starts the real restore controller, with its server.
func (b *backups) startRestorer(name string) {
	w := b.w
	o := &operator{w: w, name: name, place: name, kin: &b.restorers}
	o.again = func() { b.startRestorer(name) }
	listener := newPipes()
	b.listeners[o] = listener
	w.launch(o, program{component: "etcd-restore-operator", elects: b.pair, make: func(o *operator, t tools) (interface{ Run(context.Context) error }, error) {
		return restore.New(restore.Config{
			Namespace: namespace, Version: "1.0.0", URL: "http://etcd-restore-operator." + namespace + ".svc:19999/v1/backup/", Service: leads{o},
			Kube: t.kube, Etcd: t.etcds, Dynamic: t.dynamic, CRDs: t.crds,
			Recorder: t.recorder, Registry: prometheus.NewRegistry(), Logger: t.logger, Clock: t.clock,
			OpenLocation: func(_ context.Context, _ string, spec *api.RestoreSpec) (*location.Location, error) {
				return b.bucket.at(o, spec.Path())
			},
			Listen: func(context.Context, string, string) (net.Listener, error) { return listener, nil },
		})
	}})
}

// leads is the Service of a restore operator: it leads to the instance that works.
type leads struct{ o *operator }

func (l leads) Problem() error { return nil }

func (l leads) Run(ctx context.Context) {
	c := &call{actor: l.o, key: l.o.name + " leads"}
	c.route = func() {
		l.o.w.backups.serving = l.o
		l.o.w.answer(c, true)
	}
	_, _ = l.o.w.ask(ctx, c)
	<-ctx.Done()
}

// server returns the restore operator that the Service leads to.
func (b *backups) server() *operator {
	if b.serving == nil || b.serving.ended {
		return nil
	}
	return b.serving
}

func (b *backups) schedule() {
	l := b.w.life
	obj := &api.EtcdBackup{ObjectMeta: b.w.meta(scheduledName, "00000000-0000-4000-8000-bbbbbbbbbbbb")}
	obj.Spec.EtcdCluster = &api.EtcdClusterRef{Name: clusterName}
	obj.Spec.StorageType = api.BackupStorageTypeS3
	obj.Spec.S3 = &api.S3BackupSource{Path: scheduledPath}
	obj.Spec.BackupPolicy = &api.BackupPolicy{
		BackupIntervalInSecond: []int64{45, 60, 90, 180}[l.number("interval")%4],
		MaxBackups:             int(l.number("max backups") % 4),
		TimeoutInSecond:        []int64{20, 60, 60, 300}[l.number("timeout")%4],
	}
	b.w.narrate("person", "makes the EtcdBackup %s, every %d s, at most %d are kept", obj.Name, obj.Spec.BackupPolicy.BackupIntervalInSecond, obj.Spec.BackupPolicy.MaxBackups)
	b.w.api.put(b.w.api.shelves["etcdbackups"], obj)
}

func (b *backups) once() {
	obj := &api.EtcdBackup{ObjectMeta: b.w.meta(onceName, "00000000-0000-4000-8000-cccccccccccc")}
	obj.Spec.EtcdCluster = &api.EtcdClusterRef{Name: clusterName}
	obj.Spec.StorageType = api.BackupStorageTypeS3
	obj.Spec.S3 = &api.S3BackupSource{Path: oncePath}
	b.w.narrate("person", "makes the EtcdBackup %s", obj.Name)
	b.w.api.put(b.w.api.shelves["etcdbackups"], obj)
}

func (w *world) meta(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid, Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second))}
}

// restore makes the EtcdRestore, unless there is one or no backup.
func (b *backups) restore(why string) {
	w, l := b.w, b.w.life
	if b.stored == 0 || b.restoration() != nil {
		return
	}
	obj := &api.EtcdRestore{ObjectMeta: w.meta(clusterName, "00000000-0000-4000-8000-dddddddddddd")}
	obj.Spec.EtcdCluster.Name = clusterName
	obj.Spec.BackupStorageType = api.BackupStorageTypeS3
	obj.Spec.S3 = &api.S3BackupSource{Path: scheduledPath}
	obj.Spec.Pick = api.RestorePickNewest
	scheduled, once := b.saved(scheduledName), b.saved(onceName)
	switch pick := l.number("pick") % 4; {
	case pick == 0 && once != nil && once.Status.Key != "":
		obj.Spec.S3.Path, obj.Spec.Pick = once.Status.Key, ""
	case pick == 1 && scheduled != nil && scheduled.Status.Key != "":
		obj.Spec.S3.Path, obj.Spec.Pick = scheduled.Status.Key, ""
	}
	obj.Spec.OldVolumes = []api.OldVolumes{"", api.OldVolumesKeep, api.OldVolumesDeleteFirst}[l.number("old volumes")%3]
	if l.chance(0.3, "bump") {
		obj.Spec.BumpRevision = 1000000
	}
	w.narrate("person", "makes an EtcdRestore of %s, pick %q, old volumes %q: %s", obj.Spec.S3.Path, obj.Spec.Pick, obj.Spec.OldVolumes, why)
	w.api.put(w.api.shelves["etcdrestores"], obj)
}

func (b *backups) restoration() *api.EtcdRestore {
	if s := b.w.api.shelves["etcdrestores"].objects[storedKey(namespace, clusterName)]; s != nil {
		return s.obj.(*api.EtcdRestore)
	}
	return nil
}

func (b *backups) saved(name string) *api.EtcdBackup {
	if s := b.w.api.shelves["etcdbackups"].objects[storedKey(namespace, name)]; s != nil {
		return s.obj.(*api.EtcdBackup)
	}
	return nil
}

// committed reports whether the restore has begun to replace the cluster.
func committed(r *api.EtcdRestore) bool { return r != nil && r.Status.Cluster != nil }

// begins notes that a seed begins with a backup.
func (b *backups) begins(clusterID uint64, m *machine, state savedState) {
	w := b.w
	if h := w.histories[clusterID]; h != nil && h.served {
		w.fail("a seed is restored again as cluster %x, on which clients rely", clusterID)
		return
	}
	w.histories[clusterID] = &history{entries: map[uint64]string{}, last: 1, machine: m.clone(), restored: true}
	w.rolledBack, w.wentBack, w.wiped = false, false, false
	for _, c := range w.clients {
		c.acked = state.Data[c.name]
	}
	for _, floor := range b.floors {
		for name := range floor {
			floor[name] = min(floor[name], state.Data[name])
		}
	}
}

// leadsTo reports whether the client Service leads to a pod. Without a Service, only lives with restores
// keep clients away.
func (w *world) leadsTo(pod *corev1.Pod) bool {
	s := w.api.shelves["services"].objects[storedKey(namespace, clusterName+"-client")]
	if s == nil {
		return w.backups == nil
	}
	return labels.SelectorFromSet(s.obj.(*corev1.Service).Spec.Selector).Matches(labels.Set(pod.Labels))
}

// stuck returns why a restore that has begun can't end; "": it can.
func (b *backups) stuck() string {
	r := b.restoration()
	if !committed(r) || r.Status.Succeeded || r.Status.Backup == nil {
		return ""
	}
	o := b.bucket.objects[strings.TrimPrefix(r.Status.Backup.Key, "bucket/")]
	if o == nil || digestOf(o.content) != r.Status.Backup.SHA256 {
		return "the backup that is being restored is gone"
	}
	return ""
}

// lostData are the obstacles that a restore removes.
var lostData = []string{"a quorum has lost its data", "data was lost"}

// hopeful reports whether a restore will remove an obstacle.
func (b *backups) hopeful(what string) bool {
	if b == nil || !slices.Contains(lostData, what) {
		return false
	}
	r := b.restoration()
	if r == nil {
		r = &api.EtcdRestore{}
		r.Spec.S3, r.Spec.Pick = &api.S3BackupSource{Path: scheduledPath}, api.RestorePickNewest
		return b.stored > 0 && b.whole(r)
	}
	// Once the first member has served, a loss while others join needs a person.
	return !r.Status.Succeeded && r.Status.Phase != api.RestorePhaseFailed && r.Status.ServedDate == nil && b.whole(r) && b.stuck() == ""
}

// replacing reports whether a restore has deleted the old cluster, and has not ended.
func (b *backups) replacing() bool {
	return b != nil && committed(b.restoration()) && !b.restoration().Status.Succeeded
}

// forgotten reports whether a pod has restored the backup in memory, and lost it.
func (w *world) forgotten() bool {
	for _, n := range w.nodes {
		for _, r := range n.runs {
			if r.pod != nil && r.seeding != nil && r.seeding.done && !r.ended && !r.disk().hasData() {
				return true
			}
		}
	}
	return false
}

// settled reports whether a backup succeeded after the storm, and the restore has an outcome.
func (b *backups) settled(calm time.Duration) bool {
	s := b.saved(scheduledName)
	if s == nil || !s.Status.Succeeded || s.Status.LastSuccessDate == nil || b.stormEnd.IsZero() || !b.madeSince(s) {
		return false
	}
	if o := b.saved(onceName); o != nil && o.Status.Phase != api.BackupPhaseSucceeded && !(b.former && o.Status.Phase == api.BackupPhaseFailed) {
		return false
	}
	r := b.restoration()
	switch {
	case r == nil || r.Status.Succeeded && len(r.Finalizers) == 0:
		return true
	case committed(r):
		return false
	case r.Status.Phase == api.RestorePhaseFailed && (b.hopeless || !b.whole(r)):
		return r.Status.Reason != ""
	case r.Status.Phase == api.RestorePhaseRetrying && !b.whole(r):
		return r.Status.Reason != "" && calm > 5*time.Minute
	}
	return false
}

// madeSince reports whether the last backup was stored after the storm.
func (b *backups) madeSince(s *api.EtcdBackup) bool {
	o := b.bucket.objects[strings.TrimPrefix(s.Status.Key, "bucket/")]
	return o != nil && o.Modified.After(b.stormEnd)
}

// whole reports whether the store holds a good backup that the restore asks for, and no
// damaged one.
func (b *backups) whole(r *api.EtcdRestore) bool {
	return b.wholeSince(r, time.Now()) != ""
}

// wholeSince names a good backup that the restore asks for and that the store has had since a
// time; "": there is none.
func (b *backups) wholeSince(r *api.EtcdRestore, at time.Time) string {
	path := strings.TrimPrefix(r.Spec.S3.Path, "bucket/")
	for _, key := range slices.Sorted(maps.Keys(b.bucket.objects)) {
		o := b.bucket.objects[key]
		if asked := key == path || r.Spec.Newest() && strings.HasPrefix(key, path+"_v"); asked && b.taken[digestOf(o.content)] != nil && !o.Modified.After(at) {
			return key
		}
	}
	return ""
}

// describe describes the backups and the restore.
func (b *backups) describe() string {
	var text strings.Builder
	for _, name := range []string{scheduledName, onceName} {
		if s := b.saved(name); s != nil {
			fmt.Fprintf(&text, "\n  EtcdBackup %s: %s, succeeded %t, failures %d, key %s, reason %q", name, s.Status.Phase, s.Status.Succeeded, s.Status.Failures, s.Status.Key, s.Status.Reason)
		}
	}
	if r := b.restoration(); r != nil {
		fmt.Fprintf(&text, "\n  EtcdRestore: %s, committed %t, succeeded %t, passed over %q, reason %q", r.Status.Phase, committed(r), r.Status.Succeeded, r.Status.PassedOver, r.Status.Reason)
	}
	for _, key := range slices.Sorted(maps.Keys(b.bucket.objects)) {
		o := b.bucket.objects[key]
		fmt.Fprintf(&text, "\n  object %s of %s, whole %t, lie %t", key, o.Modified.Sub(b.w.start), b.taken[digestOf(o.content)] != nil, o.lie)
	}
	return text.String()
}
