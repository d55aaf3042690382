// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Somebody may install an older CustomResourceDefinition without the status subresource while the
// operator runs. The EtcdBackup is still there then, and its schedule must not end.
func TestAStatusThatTheAPIServerDoesNotKnowEndsNoBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		var lacking atomic.Bool
		w.etcd.PrependReactor("update", "etcdbackups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return lacking.Load(), nil, apierrors.NewNotFound(api.Resource(api.EtcdBackupResourcePlural), "b")
		})
		var told atomic.Int64
		w.cfg.StatusMissing = func() { told.Add(1) }
		defer w.run()()
		pass(time.Minute)
		lacking.Store(true)
		pass(2 * time.Hour)
		lacking.Store(false)
		before := w.store.count("put")
		pass(2 * time.Hour)
		if puts := w.store.count("put"); puts <= before || told.Load() == 0 {
			t.Errorf("%d backups and %d later, reported %d times", before, puts, told.Load())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !strings.Contains(w.logged.String(), "has no status subresource") {
			t.Error("the log does not say why")
		}
	})
}

// A 404 may also be about the resource, which one of several API servers does not know yet.
func TestAnAPIServerThatDoesNotKnowTheResourceEndsNoBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		var unknown atomic.Bool
		w.etcd.PrependReactor("*", "etcdbackups", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return unknown.Load(), nil, apierrors.NewGenericServerResponse(404, a.GetVerb(), api.Resource(api.EtcdBackupResourcePlural), "b", "404 page not found", 0, true)
		})
		unknown.Store(true)
		defer w.run()()
		pass(time.Minute)
		unknown.Store(false)
		pass(10 * time.Minute)
		if st := w.status(); !st.Succeeded {
			t.Errorf("status %+v", st)
		}
	})
}

func TestAnEtcdBackupThatIsGoneEndsItsBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(hourly))
		w.cfg.StatusMissing = func() { t.Error("the definition is not at fault") }
		b := w.backup()
		if err := w.etcd.Tracker().Delete(backupsResource, "ns", "b"); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"status":    b.write(t.Context(), false, func(st *api.BackupStatus) { st.LastExecutionDate = &metav1.Time{Time: time.Now()} }),
			"finalizer": b.finalize(t.Context(), true),
		} {
			if !errors.Is(err, errGone) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
