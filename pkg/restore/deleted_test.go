// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
)

// editAndDelete is what somebody does who has changed his mind twice.
func (w *world) editAndDelete() {
	w.edit(func(r *api.EtcdRestore) { r.Spec.BumpRevision = 1000 })
	w.change(func() {
		w.find = goodBackup
		w.remove("etcdrestores", "c")
	})
}

// The restore ends, wherever the old cluster still is as it was: the operator is stopped
// by each of its requests in turn until the old cluster is deleted, and continues when the
// EtcdRestore was edited and deleted.
func TestOneThatIsEditedAndDeletedEndsWhereNothingWasTouched(t *testing.T) {
	for name, tc := range map[string]struct{ verb, resource string }{
		"while the backup is looked for":        {"get", "etcdrestores"},
		"before it has its finalizer":           {"patch", "etcdrestores"},
		"before the token is made":              {"create", "secrets"},
		"before the old cluster is held":        {"patch", "etcdclusters"},
		"when all that is left is its deletion": {"delete", "etcdclusters"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				old := w.running(2)
				w.add("etcdrestores", testRestore())
				w.runUntil(tc.verb, tc.resource)
				w.editAndDelete()
				stop := w.run()
				defer stop()
				w.live(time.Minute)
				if c := w.cluster(); w.restore() != nil || c == nil || c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers) > 0 || len(w.all("pods")) != 2 {
					t.Errorf("cluster %+v, EtcdRestore %+v", c, w.restore())
				}
			})
		})
	}
}

// The old cluster is gone: the restore continues, and never with a spec that nobody has
// checked. What was asked for last is read as a whole first.
func TestOneThatIsEditedAndDeletedLaterFollowsTheEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		w.etcdOperator = false
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the new EtcdCluster", time.Minute, in(api.RestorePhaseStarting, w))
		w.edit(func(r *api.EtcdRestore) { r.Spec.BumpRevision = 1000 })
		w.change(func() {
			w.find = func() (selection.Verified, []string, error) {
				return selection.Verified{}, nil, errors.New("the store is down")
			}
			w.remove("etcdrestores", "c")
		})
		w.live(time.Minute)
		if len(w.offers) > 0 {
			t.Error("what nobody wants any more is still offered")
		}
		if seed, err := api.SeedBackupOf(w.cluster()); err != nil || seed.BumpRevision != 0 {
			t.Errorf("a bump that nobody has checked: %+v, %v", seed, err)
		}
		w.change(func() { w.find, w.etcdOperator = goodBackup, true })
		w.await("its end", 10*time.Minute, func() bool { return w.restore() == nil })
		if c := w.cluster(); c == nil || c.Status.RestoredFrom == nil || c.Status.RestoredFrom.SHA256 != digest(2) {
			t.Errorf("cluster %+v", c)
		}
	})
}

// A deletion alone is no edit, and interrupts nobody who fetches the backup.
func TestADeletionLeavesTheOfferAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		w.etcdOperator = false
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the new EtcdCluster", time.Minute, in(api.RestorePhaseStarting, w))
		w.change(func() {
			w.find = goodBackup
			w.remove("etcdrestores", "c")
		})
		before := w.withdrawn
		w.live(time.Minute)
		if len(w.offers) != 1 || w.withdrawn != before {
			t.Errorf("%d offers, %d were withdrawn", len(w.offers), w.withdrawn-before)
		}
		w.change(func() { w.etcdOperator = true })
		w.await("its end", 2*time.Minute, func() bool { return w.restore() == nil })
		if c := w.cluster(); c.Status.RestoredFrom.SHA256 != digest(1) {
			t.Errorf("cluster %+v", c)
		}
	})
}
