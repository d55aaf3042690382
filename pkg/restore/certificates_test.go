// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The old pods run on copies of their certificates. The new ones could not start.
func TestARestoreWaitsForTheCertificatesOfTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.running(1)
		u := w.get("etcdclusters", "c").DeepCopy()
		c := w.cluster()
		c.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{
			Member: &api.MemberSecret{PeerSecret: "peers", ServerSecret: "servers"}, OperatorSecret: "clients",
		}}
		u.Object["spec"] = untyped("etcdclusters", c).Object["spec"]
		w.put("etcdclusters", u)
		for _, name := range []string{"peers", "clients"} {
			w.add("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}})
		}
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		w.await("the reason", time.Minute, in(api.RestorePhaseRetrying, w))
		w.live(10 * time.Minute)
		if c := w.cluster(); c == nil || c.UID != old || c.DeletionTimestamp != nil || len(w.all("pods")) != 1 {
			t.Error("something was touched")
		}
		if reason := w.restore().Status.Reason; !strings.Contains(reason, "there is no Secret servers, which spec.TLS.static.member.serverSecret of the EtcdCluster names") {
			t.Errorf("the reason is %q", reason)
		}
		w.change(func() {
			w.add("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "servers", Namespace: "ns"}})
		})
		w.await("success", 10*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}
