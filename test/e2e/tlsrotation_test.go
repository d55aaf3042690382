//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// refreshed bounds the time until a kubelet brings a changed Secret to the pods, on a busy
// machine.
const refreshed = 4 * time.Minute

// A new CA for all processes, in the three steps of doc/tls.md, under load.
func TestTLSRotatedCAIsSurvived(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	generate := "example/tls/generate.sh --cluster=etcd --dir=" + t.TempDir()
	n.Shell(generate)
	p := newPKI(t, n)
	cluster := n.CreateObject(p.cluster(3, etcd36, nil))
	cluster.WaitSettled()
	writer := cluster.StartWriter()
	serving := cluster.WatchServing()
	old := secretFile(t, n, "etcd-server-tls", "server-ca.crt")

	first := cluster.Pods()
	n.Shell(generate + " --add-ca")
	waitRolled(t, cluster, first)
	second := cluster.Pods()

	n.Shell(generate + " --use-new-ca")
	waitServed(t, n, cluster, "etcd-server-tls", "server.crt")
	if err := sameUIDs(second, cluster.Pods()); err != nil {
		t.Errorf("members were recreated for new certificates of a CA that they trust: %v", err)
	}

	n.Shell(generate + " --drop-old-ca")
	waitRolled(t, cluster, second)
	if now := secretFile(t, n, "etcd-server-tls", "server-ca.crt"); bytes.Contains(now, old) {
		t.Error("the old CA is trusted still")
	}
	cluster.WaitCondition(harness.Settle, certificatesValid, corev1.ConditionTrue)
	quorumWasKept(t, serving)
	cluster.VerifyWrites(writer)
	n.CheckNoSecretIsTold()
}

// waitRolled waits until none of the old pods is left and the cluster is settled.
func waitRolled(t *testing.T, cluster *harness.Cluster, before []*corev1.Pod) {
	t.Helper()
	harness.Wait(t, "all members recreated", 2*harness.Settle, func(ctx context.Context) error {
		_, err := cluster.Settled(ctx, before...)
		return err
	})
	cluster.WaitSettled(before...) // no old pod is still terminating
}

// waitServed waits until all members present the certificate in a Secret to their clients.
func waitServed(t *testing.T, n *harness.Namespace, cluster *harness.Cluster, secret, key string) {
	t.Helper()
	block, _ := pem.Decode(secretFile(t, n, secret, key))
	harness.Wait(t, "the certificate of Secret "+secret+" served by all members", refreshed, func(ctx context.Context) error {
		for _, pod := range cluster.Pods() {
			served, err := cluster.ServedCertificate(ctx, pod)
			if err != nil {
				return err
			}
			if !bytes.Equal(served.Raw, block.Bytes) {
				return fmt.Errorf("%s shows another one, valid from %s", pod.Name, served.NotBefore)
			}
		}
		return nil
	})
}

func secretFile(t *testing.T, n *harness.Namespace, secret, key string) []byte {
	t.Helper()
	s, err := n.Kube.CoreV1().Secrets(n.Name).Get(t.Context(), secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Data[key]
}
