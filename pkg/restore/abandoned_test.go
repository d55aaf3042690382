// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// hangs has the first reading of the backup hang, whatever its context says.
func (w *world) hangs() (letGo func(), begun *int) {
	gate, count, find := make(chan struct{}), 0, w.cfg.Find
	w.cfg.Find = func(ctx context.Context, place *location.Location, spec *api.RestoreSpec, progress func(string, int64, int64)) (selection.Verified, []string, error) {
		if count++; count == 1 {
			<-gate
		}
		return find(ctx, place, spec, progress)
	}
	return func() { close(gate) }, &count
}

func onVolume() *api.EtcdRestore {
	r := testRestore()
	r.Spec.BackupStorageType = api.BackupStorageTypeVolume
	r.Spec.BackupSource = api.BackupSource{Volume: &api.VolumeBackupSource{Path: "dir/etcd.backup"}}
	return r
}

func TestAVolumeThatHangsIsToldAndAskedAgainWhenItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		letGo, begun := w.hangs()
		w.add("etcdrestores", onVolume())
		stop := w.run()
		defer stop()
		reported := func() bool {
			st := w.restore().Status
			return st.Phase == api.RestorePhaseRetrying && strings.Contains(st.Reason, "the volume does not answer")
		}
		w.await("the reason", watchdog.StallTimeout+watchdog.GracePeriod+time.Minute, reported)
		w.edit(func(r *api.EtcdRestore) { r.Spec.Pick = api.RestorePickExact })
		w.live(20 * time.Minute)
		if !reported() || *begun != 1 {
			t.Errorf("%s: %s; %d readings on a volume that hangs", w.restore().Status.Phase, w.restore().Status.Reason, *begun)
		}
		letGo()
		w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}

// newWorldThatHangs returns a world in which a restore reads a volume that hangs, and the
// function that ends the restore operator's work.
func newWorldThatHangs(t *testing.T) (w *world, stop func()) {
	t.Helper()
	w = newWorld(t)
	w.running(1)
	letGo, _ := w.hangs()
	t.Cleanup(letGo)
	w.add("etcdrestores", onVolume())
	stop = w.run()
	w.await("the reading", time.Minute, in(api.RestorePhaseVerifying, w))
	return w, stop
}

func TestAVolumeThatHangsHoldsNeitherAnEditNorTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stop := newWorldThatHangs(t)
		w.edit(func(r *api.EtcdRestore) {
			r.Spec.S3, r.Spec.BackupStorageType = testRestore().Spec.S3, api.BackupStorageTypeS3
		})
		w.await("success from another store", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
		stop()
	})
	synctest.Test(t, func(t *testing.T) {
		_, stop := newWorldThatHangs(t)
		began := time.Now()
		stop()
		if took := time.Since(began); took > watchdog.GracePeriod {
			t.Errorf("the end took %s", took)
		}
	})
}
