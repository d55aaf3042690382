// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// As long as no first member is on record as serving, the client Service that stays
// leads to no pod: not to old ones that still end, not to the empty one of somebody
// else's EtcdCluster, and not to a first member that could be given up.
func TestTheClientServiceLeadsToNobodyUntilTheClusterServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(3)
		selector := map[string]string{"app": "etcd", "etcd_cluster": "c", "role": "chosen by the user"}
		for name, ip := range map[string]string{"c": corev1.ClusterIPNone, "c-client": "10.0.0.7"} {
			svc := w.service(name)
			svc.Spec.Selector, svc.Spec.ClusterIP = maps.Clone(selector), ip
			svc.Annotations = map[string]string{"note": "of the user"}
			w.put("services", untyped("services", svc))
		}
		w.etcdOperator = false
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the new cluster", 2*time.Minute, in(api.RestorePhaseStarting, w))

		client := w.service("c-client")
		restoring := client.Spec.Selector[restoringKey]
		delete(client.Spec.Selector, restoringKey)
		if restoring != string(w.restore().UID) || !maps.Equal(client.Spec.Selector, selector) {
			t.Errorf("the client Service selects %v, and %q", client.Spec.Selector, restoring)
		}
		if client.Spec.ClusterIP != "10.0.0.7" || client.Annotations["note"] == "" || metav1.GetControllerOf(client) != nil {
			t.Errorf("the client Service is %+v", client)
		}
		if peer := w.service("c"); !maps.Equal(peer.Spec.Selector, selector) || metav1.GetControllerOf(peer) != nil {
			t.Errorf("the peer Service is %+v", peer)
		}
	})
}

func (w *world) service(name string) *corev1.Service {
	w.t.Helper()
	obj, err := typed("services", w.get("services", name))
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.(*corev1.Service)
}
