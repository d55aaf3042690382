//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// replacedBy labels the volumes that a restore keeps, with its UID.
const replacedBy = "etcd.database.coreos.com/replaced-by"

// oldVolumes are the volumes that a restore has kept, by name.
func oldVolumes(t *testing.T, n *harness.Namespace, restore *v1beta2.EtcdRestore) map[string]corev1.PersistentVolumeClaim {
	t.Helper()
	list, err := n.Kube.CoreV1().PersistentVolumeClaims(n.Name).List(t.Context(), metav1.ListOptions{LabelSelector: replacedBy + "=" + string(restore.UID)})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]corev1.PersistentVolumeClaim{}
	for _, claim := range list.Items {
		if claim.DeletionTimestamp == nil {
			found[claim.Name] = claim
		}
	}
	return found
}

// A running cluster with TLS and volumes is restored in place. Its old volumes exist until the
// new members serve, and no longer.
func TestRestoreOfAClusterWithTLSAndVolumes(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	p := newPKI(t, r.Namespace)
	p.writeAll()
	object := p.cluster(2, etcd35, nil)
	object.Spec.Pod = onVolumes(1, "").Spec.Pod
	cluster := r.CreateObject(object)
	r.backedUp(cluster, "etcd.backup")
	before := slices.Sorted(maps.Keys(claims(t, r.Namespace, cluster)))

	release := r.holdFetch()
	defer release()
	restore := r.CreateRestore(r.spec(cluster.Name, "etcd.backup"))
	restore.AwaitPhase(v1beta2.RestorePhaseStarting)
	if kept := slices.Sorted(maps.Keys(oldVolumes(t, r.Namespace, restore.Get()))); !slices.Equal(kept, before) {
		t.Errorf("as the first member starts, of the old volumes %v there are %v", before, kept)
	}
	release()
	obj := restore.WaitSucceeded()
	cluster, _ = r.checkRestored(cluster.Name, obj)
	checkSecured(t, cluster, cluster.WaitSettled())
	harness.Wait(t, "the old volumes gone", time.Minute, func(context.Context) error {
		if left := oldVolumes(t, r.Namespace, obj); len(left) > 0 {
			return fmt.Errorf("there are %v", slices.Sorted(maps.Keys(left)))
		}
		return nil
	})
	if now := slices.Sorted(maps.Keys(claims(t, r.Namespace, cluster))); !slices.Equal(now, podNamesOf(cluster)) {
		t.Errorf("volumes %v of pods %v", now, podNamesOf(cluster))
	}
	// The data are on the volume: the first member, too, survives its pod.
	pods := cluster.Pods()
	for _, pod := range pods {
		r.DeletePod(pod)
	}
	cluster.WaitSettled(pods...)
	if got := cluster.Get("kept"); got != "yes" {
		t.Errorf("after all pods were lost the key is %q", got)
	}
	r.CheckNoSecretIsTold()
}

// The user decides about the revision and the old volumes. An old member that starts on a kept volume joins no
// cluster, and no client reaches it. The operator's own Role is enough.
func TestRestoreThatKeepsOldVolumes(t *testing.T) {
	t.Parallel()
	r := withoutRestoreOperator(t)
	r.deployWithOwnRights()
	cluster := r.CreateObject(onVolumes(1, etcd37))
	members := cluster.WaitSettled()
	cluster.Put("kept", "yes")
	seen := revision(t, cluster)
	cluster.Put("later", "yes")
	r.put("etcd.backup", r.take(cluster)) // it holds both revisions
	old := cluster.Pods()[0]

	spec := r.spec(cluster.Name, "etcd.backup")
	spec.OldVolumes, spec.Revision = v1beta2.OldVolumesKeep, seen
	restore := r.CreateRestore(spec)
	first := restore.WaitSucceeded()
	cluster, restored := r.checkRestored(cluster.Name, first)
	checkStrange(t, restored, cluster.Pods(), members[0])
	if got := first.Status.Backup; got.Revision != seen || got.EtcdRevision <= seen || revision(t, cluster) < seen+got.BumpRevision || got.BumpRevision < 1_000_000_000 {
		t.Errorf("revision %d of the backup %+v was to come back, above it: the cluster is at %d", seen, got, revision(t, cluster))
	}
	kept := oldVolumes(t, r.Namespace, first)
	if claim, there := kept[old.Name]; len(kept) != 1 || !there || len(claim.OwnerReferences) > 0 || claim.Labels["etcd_cluster"] != "" || claim.Labels["app"] != "" {
		t.Fatalf("the volume of %s is not kept without an owner: %+v", old.Name, kept)
	}

	risen := rise(t, r.Namespace, old)
	harness.Wait(t, "the old member serves what it held", harness.Settle, func(ctx context.Context) error { return serves(ctx, r.Namespace, risen.Name, "later") })
	if got := cluster.Get("later"); got != "" {
		t.Errorf("the client Service leads to the old member: %q", got)
	}
	if now := cluster.WaitSettled(); len(now) != 1 || now[0].ID != restored[0].ID {
		t.Errorf("the members are %+v, they were %+v", now, restored)
	}
	r.DeletePod(risen)

	// Again, but the volume is deleted first. The restore continues although its object is
	// deleted.
	restore.Delete()
	restore.WaitGone()
	second := cluster.Pods()[0]
	spec.OldVolumes = v1beta2.OldVolumesDeleteFirst
	release := r.holdFetch()
	defer release()
	restore = r.CreateRestore(spec)
	restore.AwaitPhase(v1beta2.RestorePhaseStopping)
	replaced := restore.Get().Status.ReplacedUID
	harness.Wait(t, "the old EtcdCluster deleted", harness.Settle, func(context.Context) error {
		if now := cluster.Object(); now != nil && now.UID == replaced && now.DeletionTimestamp == nil {
			return errors.New("it is not, and a deletion of the restore would still end it")
		}
		return nil
	})
	restore.Delete()
	restore.AwaitPhase(v1beta2.RestorePhaseStarting)
	if claim, err := r.Kube.CoreV1().PersistentVolumeClaims(r.Name).Get(t.Context(), second.Name, metav1.GetOptions{}); err == nil && claim.DeletionTimestamp == nil {
		t.Errorf("the volume of %s is there while the new cluster starts", second.Name)
	}
	obj := restore.Get()
	release()
	restore.WaitGone()
	r.checkRestored(cluster.Name, obj)
}

// rise recreates the pod of an old member on its old volume and under its old name, like a
// node that returns.
func rise(t *testing.T, n *harness.Namespace, old *corev1.Pod) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: old.Name, Labels: map[string]string{"risen": "yes"}}, Spec: *old.Spec.DeepCopy()}
	pod.Spec.NodeName, pod.Spec.InitContainers = "", nil
	pod, err := n.Kube.CoreV1().Pods(n.Name).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// serves asks one pod for a key.
func serves(ctx context.Context, n *harness.Namespace, pod, key string) error {
	now, err := n.Kube.CoreV1().Pods(n.Name).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if now.Status.PodIP == "" {
		return errors.New("it has no address")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://" + net.JoinHostPort(now.Status.PodIP, "2379")}, DialTimeout: 2 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	got, err := client.Get(ctx, key)
	if err == nil && len(got.Kvs) == 0 {
		err = fmt.Errorf("it has no key %s", key)
	}
	return err
}
