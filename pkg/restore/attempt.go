// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

var (
	// errUnfit: with the backup, or the cluster, it can't be done, whenever it is tried.
	errUnfit   = errors.New("the backup can't be restored")
	errStalled = errors.New("nothing has arrived from the store")
	errEdited  = errors.New("the EtcdRestore was edited or deleted")
	errStopped = errors.New("the restore operator ends")
)

// outcome is what came of an attempt to find a backup.
type outcome struct {
	generation int64
	manifest   manifest
	backup     api.RestoredBackup
	passedOver []string
	err        error // nil: the backup is whole, and fits
}

// attempt finds a backup for the cluster of a manifest. It touches nothing.
type attempt struct {
	cfg      *Config
	clusters dynamic.ResourceInterface
	log      *logrus.Entry
	obj      *api.EtcdRestore // nobody changes it
	manifest manifest
	known    int64 // as in begin

	abandoned *abandonedRead // what was last left to itself

	progress atomic.Pointer[readProgress]
	moved    atomic.Int64
}

type readProgress struct {
	key        string
	read, size int64
}

// reading reports how far the attempt under way has come.
func (r *Restore) reading() string {
	p := r.job.attempt.progress.Load()
	if p == nil {
		return "the backup is being looked for"
	}
	return fmt.Sprintf("reading %s: %s of %s", p.key, notice.Bytes(p.read), notice.Bytes(p.size))
}

// job is an attempt in a goroutine of its own, so that an edit can end it.
type job struct {
	*loop.Job[outcome]
	attempt *attempt
}

func (r *Restore) newAttempt(s begin) *attempt {
	return &attempt{cfg: &r.cfg, clusters: r.clusters(), log: r.log, obj: r.obj, manifest: s.manifest, known: s.known, abandoned: r.abandoned}
}

func (r *Restore) start(ctx context.Context, a *attempt) *job {
	return &job{Job: loop.Start(ctx, r.Wake, a.run), attempt: a}
}

// run never panics: others are under way in the process.
func (a *attempt) run(ctx context.Context) outcome {
	result, err := watchdog.Recover(a.log, func() outcome { return a.runOnce(ctx) })
	if err != nil {
		return outcome{generation: generation(a.obj), manifest: a.manifest, err: err}
	}
	return result
}

func (a *attempt) runOnce(ctx context.Context) (result outcome) {
	result = outcome{generation: generation(a.obj), manifest: a.manifest}
	// What may be in the way is looked for first: a backup is read to be restored at
	// once, for others may delete or replace it.
	if result.err = a.rehearse(ctx); result.err != nil {
		return result
	}
	var err error
	if result.backup, result.passedOver, err = a.find(ctx); err != nil {
		result.err = a.advised(err)
		return result
	}
	if result.err = fits(&result.backup, a.manifest); result.err == nil {
		bump := bumpFor(&a.obj.Spec, &result.backup, a.manifest, a.known)
		if result.backup.Revision > 0 {
			result.backup.BumpRevision = bump
		}
		result.err = bumpFits(&result.backup, bump)
	}
	if result.err == nil {
		result.err = a.rehearse(ctx)
	}
	return result
}

// abandonedRead is work that hangs on a store.
type abandonedRead struct {
	returned <-chan struct{} // closed when it has
	on       api.BackupStorageType
}

// blocks reports whether nothing may begin on a store, since it would hang as well. On
// another one it may: that is what helps on the worst day.
func (h *abandonedRead) blocks(on api.BackupStorageType) bool {
	return h != nil && h.on == on && !loop.Closed(h.returned)
}

// found is what came of reading.
type found struct {
	backup     api.RestoredBackup
	passedOver []string
	err        error
}

// find reads the whole of the backup that is asked for. A store that hangs in a call
// which no context ends is left to itself, and not asked again until it has returned.
func (a *attempt) find(ctx context.Context) (api.RestoredBackup, []string, error) {
	if a.abandoned.blocks(a.obj.Spec.BackupStorageType) {
		return api.RestoredBackup{}, nil, a.hangs()
	}
	ctx, stopWatch := a.watched(ctx)
	defer stopWatch()
	result, left := watchdog.Run(ctx, a.cfg.Clock, func() found { return a.readRecovered(ctx) })
	switch {
	case left != nil:
		a.abandoned = &abandonedRead{left, a.obj.Spec.BackupStorageType}
		result.err = a.hangs()
	case result.err != nil && errors.Is(context.Cause(ctx), errStalled):
		result.err = fmt.Errorf("%w for %s: look at the network on the way there", errStalled, watchdog.StallTimeout)
	}
	return result.backup, result.passedOver, result.err
}

func (a *attempt) hangs() error {
	what := "the store"
	if a.obj.Spec.BackupStorageType == api.BackupStorageTypeVolume {
		what = "the volume"
	}
	return fmt.Errorf("%s does not answer: what was under way on it was to end, and has not; nothing else is begun on %s for this EtcdRestore until it has: look at what serves it, or edit the EtcdRestore to take the backup from elsewhere", what, what)
}

// readRecovered is readWhole, and never panics.
func (a *attempt) readRecovered(ctx context.Context) found {
	result, err := watchdog.Recover(a.log, func() (result found) {
		result.backup, result.passedOver, result.err = a.readWhole(ctx)
		return result
	})
	if err != nil {
		return found{err: err}
	}
	return result
}

func (a *attempt) readWhole(ctx context.Context) (api.RestoredBackup, []string, error) {
	place, err := a.cfg.OpenLocation(ctx, a.obj.Namespace, &a.obj.Spec)
	if err != nil {
		return api.RestoredBackup{}, nil, fmt.Errorf("open the store (backupStorageType %s): %w", a.obj.Spec.BackupStorageType, err)
	}
	defer place.Close()
	found, passedOver, err := a.cfg.Find(ctx, place, &a.obj.Spec, func(key string, read, size int64) {
		a.moved.Add(1)
		a.progress.Store(&readProgress{place.Path(key), read, size})
	})
	if err != nil {
		return api.RestoredBackup{}, passedOver, err
	}
	backup := api.RestoredBackup{
		Generation: generation(a.obj),
		Key:        found.Path, Size: found.Size, SHA256: found.SHA256,
		EtcdVersion: found.EtcdVersion, EtcdRevision: found.EtcdRevision, Revision: found.Revision,
		SnapshotSize: found.SnapshotSize, ClusterID: found.ClusterID, Uncertain: found.Uncertain,
	}
	if !found.Taken.IsZero() {
		backup.Taken = notice.Timestamp(found.Taken)
	}
	if !found.Modified.IsZero() {
		backup.Modified = notice.Timestamp(found.Modified)
	}
	return backup, passedOver, nil
}

// watched returns a context that ends with errStalled when nothing arrives for
// watchdog.StallTimeout, and what stops the watch and waits for its end.
func (a *attempt) watched(ctx context.Context) (context.Context, func()) {
	ctx = store.WithProgress(ctx, func(int) { a.moved.Add(1) })
	return watchdog.WithStallTimeout(ctx, a.cfg.Clock, watchdog.Progress{
		Moved: a.moved.Load, Stalled: func() error { return errStalled },
	})
}

// advised adds what to do to errors of a store that somebody has to act on.
func (a *attempt) advised(err error) error {
	spec := &a.obj.Spec
	switch {
	case errors.Is(err, selection.ErrDamaged), errors.Is(err, selection.ErrOutside):
		return fmt.Errorf("%w: %w", errUnfit, err)
	case errors.Is(err, location.ErrSpec), errors.Is(err, location.ErrSecret):
		return err
	case errors.Is(err, store.ErrNoBucket):
		return fmt.Errorf("%w: fix spec.%s.path", err, strings.ToLower(string(spec.BackupStorageType)))
	}
	return location.Advised(err, spec.BackupStorageType, spec.BackupSource)
}

// fits reports whether the cluster can begin with the backup. A backup of which nobody
// knows the version is tried: the first member finds out.
func fits(b *api.RestoredBackup, m manifest) error {
	spec, err := m.spec()
	if err != nil {
		return err
	}
	target, err := etcd.ParseVersion(spec.EffectiveVersion())
	if err != nil {
		return fmt.Errorf("the version of the EtcdCluster: %w", err)
	}
	taken, err := etcd.ParseVersion(b.EtcdVersion)
	if err != nil {
		return nil //nolint:nilerr // nobody knows
	}
	if err := etcd.RestoreFits(taken, target); err != nil {
		return fmt.Errorf("%w: %w", errUnfit, err)
	}
	return nil
}

// rehearse finds out, while there is an EtcdCluster still, whether the way to the backup
// leads here, and has the API server say whether this operator may do what is to come,
// and whether it would take the EtcdCluster.
func (a *attempt) rehearse(ctx context.Context) error {
	cluster, err := a.manifest.cluster("{}")
	if err != nil {
		return err
	}
	if err := a.cfg.Reached(); err != nil {
		return fmt.Errorf("the first member would not find the restore operator: %w", err)
	}
	if err := a.rights(ctx); err != nil {
		return err
	}
	if err := a.certificates(ctx); err != nil {
		return err
	}
	replaces := a.obj.Spec.ClusterTemplate == nil
	// Under its own name, because rules of the API server compare other fields with it. That
	// the name is taken is the last that the API server finds out: it would take all the rest.
	_, err = a.clusters.Create(ctx, cluster, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsForbidden(err) && replaces && strings.Contains(err.Error(), "exceeded quota"):
		return nil // there is room when the old one is gone
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("the API server would not take the EtcdCluster that is to be made: %w: fix it in the EtcdCluster, or in spec.clusterTemplate", err)
	}
	return fmt.Errorf("try out the EtcdCluster that is to be made: %w", granted(err, "create etcdclusters"))
}
