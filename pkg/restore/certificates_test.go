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
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// The old pods run on copies of their certificates. The new ones could not start.
func TestARestoreWaitsForUsableCertificates(t *testing.T) {
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
		ca := etcdtest.NewCA(t, "ca")
		members := etcdtest.Leaf{DNS: []string{"*.c.ns.svc", "*.c.ns.svc.cluster.local"}}
		w.add("secrets", certificate("peers", ca, members))
		w.add("secrets", certificate("clients", ca, etcdtest.Leaf{Name: "operator"}))
		w.add("etcdrestores", testRestore())
		stop := w.run()
		defer stop()
		refuses := func(why string) {
			t.Helper()
			w.live(20 * time.Minute)
			if c := w.cluster(); c == nil || c.UID != old || c.DeletionTimestamp != nil || len(w.all("pods")) != 1 {
				t.Fatal("something was touched")
			}
			if st := w.restore().Status; st.Phase != api.RestorePhaseRetrying || !strings.Contains(st.Reason, why) {
				t.Errorf("the phase is %s, and the reason %q, want %q", st.Phase, st.Reason, why)
			}
		}
		refuses("there is no Secret servers, which spec.TLS.static.member.serverSecret of the EtcdCluster names")
		// The etcd operator starts no cluster with such certificates, and the old cluster may serve on connections
		// from before.
		for why, secret := range map[string]*corev1.Secret{
			"Secret servers (spec.TLS.static.member.serverSecret) lacks server.crt and server.key and server-ca.crt": {},
			"the certificate is for *.other.ns.svc, and not for the members' names":                                  certificate("servers", ca, etcdtest.Leaf{DNS: []string{"*.other.ns.svc"}}),
			"of Secret servers is out of date, or its CA is: the operator refuses the members":                       certificate("servers", ca, etcdtest.Leaf{DNS: members.DNS, To: time.Now().Add(-time.Minute)}),
			"of Secret servers is signed by none of the CAs":                                                         certificate("servers", etcdtest.NewCA(t, "other"), members),
		} {
			secret.Name, secret.Namespace = "servers", "ns"
			w.change(func() { w.put("secrets", untyped("secrets", secret)) })
			refuses(why)
		}
		w.change(func() { w.put("secrets", untyped("secrets", certificate("servers", ca, members))) })
		w.await("success", 20*time.Minute, in(api.RestorePhaseSucceeded, w))
	})
}

// certificate is a Secret as cert-manager makes them.
func certificate(name string, ca *etcdtest.CA, leaf etcdtest.Leaf) *corev1.Secret {
	cert, key := ca.Issue(leaf)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Data:       map[string][]byte{corev1.TLSCertKey: cert, corev1.TLSPrivateKeyKey: key, "ca.crt": ca.PEM},
	}
}
