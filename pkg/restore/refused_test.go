// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const serviceRule = "service.name must not be the name of the cluster"

// ruleAboutTheService is that of the CustomResourceDefinition for new EtcdClusters. One of an
// earlier operator may break it, and continues. rehearsals: it counts for dry runs as well.
func ruleAboutTheService(rehearsals bool) func(verb, resource, name string, action clienttesting.Action) error {
	return func(verb, resource, name string, action clienttesting.Action) error {
		if verb != "create" || resource != "etcdclusters" {
			return nil
		}
		create := action.(clienttesting.CreateActionImpl)
		if len(create.CreateOptions.DryRun) > 0 && !rehearsals {
			return nil
		}
		if service, _, _ := unstructured.NestedString(create.Object.(*unstructured.Unstructured).Object, "spec", "service", "name"); service != name {
			return nil
		}
		return apierrors.NewInvalid(kinds[resource].GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath("spec", "service", "name"), name, serviceRule)})
	}
}

func namedLikeItsService(c *api.EtcdCluster) { c.Spec.Service = &api.ServicePolicy{Name: c.Name} }

func TestAClusterThatTheAPIServerWouldNotTakeAgainStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(2)
		w.rewrite(namedLikeItsService)
		w.hinder(ruleAboutTheService(true))
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the reason", time.Minute, func() bool {
			st := w.restore().Status
			return st.Phase == api.RestorePhaseRetrying && strings.Contains(st.Reason, serviceRule) && strings.Contains(st.Reason, "fix it in the EtcdCluster")
		})
		w.live(10 * time.Minute)
		if c, r := w.cluster(), w.restore(); c == nil || c.UID != old || c.DeletionTimestamp != nil || len(c.Finalizers)+len(r.Finalizers) > 0 || committed(&r.Status) || len(w.all("pods")) != 2 {
			t.Fatalf("something was touched: %+v, %+v", c, r)
		}
		w.rewrite(func(c *api.EtcdCluster) { c.Spec.Service = nil })
		w.await("success", 7*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}

// A rule may have come since the rehearsal, or an earlier operator did not notice it. The old
// cluster is gone then.
func TestAnEtcdClusterOnRecordThatTheAPIServerDoesNotTakeNeedsAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(2)
		w.rewrite(namedLikeItsService)
		w.hinder(ruleAboutTheService(false))
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		stalled := func() bool {
			st := w.restore().Status
			for _, c := range st.Conditions {
				if string(c.Type) == "Stalled" && string(c.Status) == "True" && c.Reason == "CreatingBlocked" {
					return strings.Contains(st.Reason, serviceRule) && strings.Contains(st.Reason, "kubectl edit etcdrestore c --subresource=status")
				}
			}
			return false
		}
		w.await("the reason", 2*time.Minute, stalled)
		w.live(10 * time.Minute)
		if !stalled() {
			t.Errorf("status %+v", w.restore().Status)
		}
		w.edit(func(r *api.EtcdRestore) {
			r.Status.Cluster.Raw = bytes.ReplaceAll(r.Status.Cluster.Raw, []byte(`"service":{"name":"c"},`), nil)
		})
		w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}
