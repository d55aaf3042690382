// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Somebody may install an older CustomResourceDefinition without the status subresource while the
// operator runs. It is reported, and the restore continues with the right one.
func TestAStatusThatTheAPIServerDoesNotKnowIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(1)
		w.add("etcdrestores", testRestore())
		var lacking atomic.Bool
		lacking.Store(true)
		w.before = func(verb, resource, name string, _ clienttesting.Action) error {
			if lacking.Load() && verb == "update" && resource == "etcdrestores" {
				return apierrors.NewNotFound(api.Resource(resource), name)
			}
			return nil
		}
		var told atomic.Int64
		w.cfg.StatusMissing = func() { told.Add(1) }
		stop := w.run()
		defer stop()
		w.live(time.Minute)
		if c := w.cluster(); c == nil || c.UID != old || told.Load() == 0 {
			t.Errorf("cluster %+v, reported %d times", c, told.Load())
		}
		lacking.Store(false)
		w.live(5 * time.Minute)
		if r := w.restore(); !r.Status.Succeeded {
			t.Errorf("status %+v", r.Status)
		}
	})
}

// A restore that is done reads nothing before it writes, and its object may be gone by then.
func TestAnEtcdRestoreThatIsGoneIsNoFaultOfTheDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cfg.StatusMissing = func() { t.Error("the definition is not at fault") }
		obj := testRestore()
		obj.Namespace, obj.UID, obj.Generation, obj.Status.Succeeded = "ns", "of-v0.9.4", 1, true
		r, err := New(w.cfg, obj)
		if err != nil {
			t.Fatal(err)
		}
		if r.pass(t.Context()); !r.gone {
			t.Error("it continues with an EtcdRestore that is gone")
		}
	})
}
