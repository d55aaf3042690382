//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const certificatesValid = v1beta2.ClusterConditionCertificatesValid

// The example with Secrets in the form of cert-manager. Pages apply both examples.
func TestTLSWithCertificatesOfCertManager(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	n.Shell("example/tls/generate.sh --cluster=example-cert-manager --form=cert-manager --dir=" + t.TempDir())
	n.Shell("kubectl apply -f example/tls/example-cert-manager-cluster.yaml")
	cluster := n.Adopt("example-cert-manager")
	checkSecured(t, cluster, cluster.WaitSettled())
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionTrue, "Certificates valid")

	lost := cluster.Follower()
	n.DeletePod(lost)
	cluster.WaitSettled(lost)
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("the key that was written is %q", got)
	}
	n.CheckNoSecretIsTold()
}

// checkSecured writes a key, and tries to connect without a certificate.
func checkSecured(t *testing.T, cluster *harness.Cluster, members []harness.Member) {
	t.Helper()
	cluster.Put("kept", "yes")
	for _, m := range members {
		if !strings.HasPrefix(m.PeerURL, "https://") {
			t.Errorf("peer URL %s", m.PeerURL)
		}
	}
	keepsOut(t, cluster, map[string]*tls.Config{
		"a client in plain text":       nil,
		"a client without certificate": {InsecureSkipVerify: true},
	})
}

// keepsOut fails the test if a member accepts one of the strangers, or does not answer a
// client with a certificate.
func keepsOut(t *testing.T, cluster *harness.Cluster, strangers map[string]*tls.Config) {
	t.Helper()
	pod := cluster.Pods()[0]
	harness.Wait(t, pod.Name+" lets in who has a certificate", harness.Settle, func(ctx context.Context) error {
		_, err := cluster.Reader(pod).Read(ctx, "any")
		return err
	})
	for who, security := range strangers {
		if err := cluster.DialAs(t.Context(), pod, security); err == nil {
			t.Errorf("%s was let in", who)
		}
	}
}

func TestTLSBetweenPeersAlone(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	p := newPKI(t, n)
	p.write("peer")
	cluster := n.CreateObject(p.cluster(2, etcd36, func(s *v1beta2.StaticTLS) { s.Member.ServerSecret, s.OperatorSecret = "", "" }))
	for _, m := range cluster.WaitSettled() {
		if !strings.HasPrefix(m.PeerURL, "https://") {
			t.Errorf("peer URL %s", m.PeerURL)
		}
	}
	harness.Wait(t, "a client in plain text", harness.Settle, func(ctx context.Context) error {
		return cluster.DialAs(ctx, cluster.Pods()[0], nil)
	})
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionTrue, "peer")
}

func TestTLSForClientsAlone(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	p := newPKI(t, n)
	p.write("server")
	p.write("operator")
	cluster := n.CreateObject(p.cluster(1, etcd36, func(s *v1beta2.StaticTLS) { s.Member.PeerSecret = "" }))
	for _, m := range cluster.WaitSettled() {
		if !strings.HasPrefix(m.PeerURL, "http://") {
			t.Errorf("peer URL %s", m.PeerURL)
		}
	}
	keepsOut(t, cluster, map[string]*tls.Config{"a client in plain text": nil})
}

// The maintained fork's switch for self-signed certificates.
func TestTLSWithServersThatAreNotVerified(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	p := newPKI(t, n)
	p.write("peer")
	p.write("operator")
	p.writeLeaf("server", etcdtest.NewCA(t, "nobody"), etcdtest.Leaf{Name: "no names"})
	cluster := n.CreateObject(p.cluster(1, etcd36, func(s *v1beta2.StaticTLS) { s.AllowSelfSignedCertificates = true }))
	cluster.WaitSettled()
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionTrue)
}

// A cluster without its Secret says so, creates nothing that would hang, and starts when the
// Secret exists.
func TestTLSMissingSecretIsToldAndHealed(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	p := newPKI(t, n)
	p.write("peer")
	p.write("operator")
	cluster := n.CreateObject(p.cluster(1, etcd36, nil))
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionFalse, "Secret Missing", "etcd-server-tls", "server-ca.crt")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "etcd-server-tls")
	cluster.WaitWarning(harness.Settle, "Certificate Problem", "etcd-server-tls")
	harness.Wait(t, "status.reason", harness.Settle, func(context.Context) error {
		if reason := cluster.Status().Reason; !strings.Contains(reason, "etcd-server-tls") {
			return fmt.Errorf("it is %q", reason)
		}
		return nil
	})
	harness.Holds(t, "no pods are made", 10*time.Second, func(context.Context) error {
		if pods := cluster.Pods(); len(pods) > 0 {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	p.writeWithout("server", "server.key")
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionFalse, "Key Missing", "server.key")
	p.write("server")
	cluster.WaitSettled()
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionTrue)
	n.CheckNoSecretIsTold()
}

// An operator that starts without its certificate can't query the members. It says so, reports
// what it does see, and changes nothing.
func TestTLSOperatorWithoutItsCertificateTouchesNothing(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	p := newPKI(t, n)
	p.writeAll()
	cluster := n.CreateObject(p.cluster(3, etcd37, nil))
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	pods := cluster.Pods()

	n.DeleteSecret("etcd-client-tls")
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionFalse, "Secret Missing", "etcd-client-tls")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue) // with the facts that it has
	n.CrashOperator()
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionUnknown, "Operator can't connect", "etcd-client-tls", "3 of 3 ready")
	cluster.Resize(1)
	harness.Holds(t, "nothing is touched", 20*time.Second, func(context.Context) error {
		return sameUIDs(pods, cluster.Pods())
	})
	cluster.Resize(3)
	cluster.WaitObserved() // a read of a Secret may be newer than the watch
	p.write("operator")
	cluster.WaitSettled()
	if err := sameUIDs(pods, cluster.Pods()); err != nil {
		t.Error(err)
	}
	cluster.VerifyWrites(writer)
	n.CheckNoSecretIsTold()
}

func sameUIDs(before, after []*corev1.Pod) error {
	uids := func(pods []*corev1.Pod) (list []string) {
		for _, pod := range pods {
			list = append(list, string(pod.UID))
		}
		slices.Sort(list)
		return list
	}
	if !slices.Equal(uids(before), uids(after)) {
		return fmt.Errorf("pods %v became %v", uids(before), uids(after))
	}
	return nil
}

// pki creates the Secrets of a cluster named etcd.
type pki struct {
	t     *testing.T
	n     *harness.Namespace
	ca    *etcdtest.CA
	names []string // of members and Service
	data  map[string]map[string][]byte
}

var tlsSecrets = map[string]struct{ secret, prefix string }{
	"peer": {"etcd-peer-tls", "peer"}, "server": {"etcd-server-tls", "server"}, "operator": {"etcd-client-tls", "etcd-client"},
}

func newPKI(t *testing.T, n *harness.Namespace) *pki {
	members, service := "*.etcd."+n.Name+".svc", "etcd-client."+n.Name+".svc"
	return &pki{t: t, n: n, ca: etcdtest.NewCA(t, "ca"), names: []string{members, members + ".cluster.local", service}, data: map[string]map[string][]byte{}}
}

// write issues a certificate and writes it to its Secret.
func (p *pki) write(use string) {
	p.t.Helper()
	p.writeLeaf(use, p.ca, etcdtest.Leaf{Name: use, DNS: p.names})
}

func (p *pki) writeAll() {
	p.t.Helper()
	for use := range tlsSecrets {
		p.write(use)
	}
}

func (p *pki) writeLeaf(use string, by *etcdtest.CA, leaf etcdtest.Leaf) {
	p.t.Helper()
	cert, key := by.Issue(leaf)
	prefix := tlsSecrets[use].prefix
	p.data[use] = map[string][]byte{prefix + ".crt": cert, prefix + ".key": key, prefix + "-ca.crt": p.ca.PEM}
	p.n.SetSecret(tlsSecrets[use].secret, p.data[use])
}

func (p *pki) writeWithout(use, key string) {
	p.t.Helper()
	cert, private := p.ca.Issue(etcdtest.Leaf{Name: use, DNS: p.names})
	prefix := tlsSecrets[use].prefix
	data := map[string][]byte{prefix + ".crt": cert, prefix + ".key": private, prefix + "-ca.crt": p.ca.PEM}
	delete(data, key)
	p.n.SetSecret(tlsSecrets[use].secret, data)
}

// cluster is an EtcdCluster with all Secrets, before edit changes it.
func (p *pki) cluster(size int, version string, edit func(*v1beta2.StaticTLS)) *v1beta2.EtcdCluster {
	static := &v1beta2.StaticTLS{
		Member:         &v1beta2.MemberSecret{PeerSecret: "etcd-peer-tls", ServerSecret: "etcd-server-tls"},
		OperatorSecret: "etcd-client-tls",
	}
	if edit != nil {
		edit(static)
	}
	return &v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
		Spec:       v1beta2.ClusterSpec{Size: size, Version: version, TLS: &v1beta2.TLSPolicy{Static: static}},
	}
}
