//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

// restores is a namespace with the etcd operator, the restore operator, a MinIO
// beside them, and its credentials.
type restores struct{ *backups }

func newRestores(t *testing.T) *restores {
	t.Helper()
	r := withoutRestoreOperator(t)
	r.DeployRestoreOperator(nil)
	return r
}

func withoutRestoreOperator(t *testing.T) *restores {
	t.Helper()
	n := harness.New(t)
	r := &restores{&backups{Namespace: n, t: t, minio: stores.MinIO(t, stores.Options{IP: n.HostIP(t)})}}
	r.minio.CreateBucket(t, bucket)
	r.setCredentials(r.minio.SecretKey)
	return r
}

// spec is a restore of a cluster from a key in the bucket.
func (r *restores) spec(cluster, key string) v1beta2.RestoreSpec {
	return v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.EtcdClusterRef{Name: cluster}, BackupStorageType: v1beta2.BackupStorageTypeS3, BackupSource: r.source(key),
	}
}

// template is a cluster for a restore to create.
func template(t *testing.T, spec v1beta2.ClusterSpec) *v1beta2.ClusterTemplate {
	t.Helper()
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	return &v1beta2.ClusterTemplate{Spec: runtime.RawExtension{Raw: text}}
}

// aBackup is a backup that a test uploads in place of the backup operator.
type aBackup struct {
	content  []byte
	metadata map[string]string
}

// take takes a backup of a cluster, without a backup operator.
func (r *restores) take(cluster *harness.Cluster) (b aBackup) {
	r.t.Helper()
	harness.Wait(r.t, "a backup taken", harness.Settle, func(ctx context.Context) error {
		client, err := cluster.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		// After a linearizable read, the member that sends the snapshot has all writes.
		now, err := client.Get(ctx, "any")
		if err != nil {
			return err
		}
		stream, err := client.Snapshot(ctx)
		if err != nil {
			return err
		}
		defer stream.Close()
		content, err := io.ReadAll(stream)
		b = aBackup{content, map[string]string{
			"etcd-version": cluster.Status().CurrentVersion, "etcd-revision": fmt.Sprint(now.Header.Revision), "size": fmt.Sprint(len(content)),
		}}
		return err
	})
	return b
}

// holdFetch blocks the download of backups until it is released: a restore reaches its phase
// Starting, and no further.
func (r *restores) holdFetch() (release func()) {
	r.t.Helper()
	return r.Hinder(r.AwaitRestoreOperator(), "etcd-restore-operator", "tcp sport 19999 drop")
}

// put stores a backup.
func (r *restores) put(key string, b aBackup) {
	r.t.Helper()
	r.minio.Put(r.t, bucket, key, bytes.NewReader(b.content), b.metadata)
}

// backedUp is a settled cluster with a key "kept" that is in the backup, and a key "later"
// that is not.
func (r *restores) backedUp(cluster *harness.Cluster, key string) []harness.Member {
	r.t.Helper()
	members := cluster.WaitSettled()
	cluster.Put("kept", "yes")
	r.put(key, r.take(cluster))
	cluster.Put("later", "yes")
	return members
}

// checkRestored waits until a restored cluster is settled. It fails the test unless the
// cluster holds the backup's data, and has IDs of its own. The pods in lost need not have
// terminated.
func (r *restores) checkRestored(name string, obj *v1beta2.EtcdRestore, lost ...*corev1.Pod) (*harness.Cluster, []harness.Member) {
	r.t.Helper()
	cluster := r.Adopt(name)
	var members []harness.Member
	harness.Wait(r.t, "the restored cluster "+name+" settled", harness.Settle, func(ctx context.Context) (err error) {
		for _, pod := range cluster.Pods() {
			if pod.DeletionTimestamp != nil && !slices.ContainsFunc(lost, func(l *corev1.Pod) bool { return l.UID == pod.UID }) {
				return fmt.Errorf("pod %s terminates", pod.Name)
			}
		}
		members, err = cluster.Settled(ctx, lost...)
		return err
	})
	// This asks the API server, since a watch may be late.
	object, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	if object.UID != obj.Status.ClusterUID {
		r.t.Errorf("cluster %s has UID %s, its restore says %s", name, object.UID, obj.Status.ClusterUID)
	}
	if text, there := object.Annotations[v1beta2.RestoreAnnotation]; there {
		r.t.Errorf("cluster %s has the annotation of its restore: %s", name, text)
	}
	if cluster.Get("kept") != "yes" {
		r.t.Errorf("cluster %s: what was backed up is not there", name)
	}
	if cluster.Get("later") != "" {
		r.t.Errorf("cluster %s: what was written after the backup is there", name)
	}
	cluster.Put("again", "yes")
	harness.Wait(r.t, "the watch has brought the Services of "+name, harness.Settle, func(context.Context) error {
		for _, service := range []*corev1.Service{r.Service(name), r.Service(name + "-client")} {
			if service == nil || !ownedBy(service.OwnerReferences, object) || service.Spec.Selector["app"] != "etcd" {
				return fmt.Errorf("there is %+v", service)
			}
		}
		return nil
	})
	checkServices(r.t, r.Namespace, cluster)
	if _, err := r.Kube.CoreV1().Secrets(r.Name).Get(r.t.Context(), name+"-restore-token", metav1.GetOptions{}); err == nil {
		r.t.Errorf("the token of the restore of %s is still there", name)
	}
	return cluster, members
}

// checkStrange fails the test unless a member of one cluster refuses messages from another's.
func checkStrange(t *testing.T, members []harness.Member, pods []*corev1.Pod, other harness.Member) {
	t.Helper()
	for i, pod := range pods {
		if members[i].ClusterID == other.ClusterID {
			t.Errorf("member %s is in the same cluster as before: %x", pod.Name, other.ClusterID)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+net.JoinHostPort(pod.Status.PodIP, "2380")+"/raft", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"X-Etcd-Cluster-ID": fmt.Sprintf("%x", other.ClusterID), "X-Server-From": fmt.Sprintf("%x", other.ID),
			"X-Server-Version": other.Version, "X-Min-Cluster-Version": "3.0.0",
		} {
			request.Header.Set(key, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusPreconditionFailed || !strings.Contains(string(text), "cluster ID mismatch") {
			t.Errorf("%s answers to a message of old member %s: %s %q, %v", pod.Name, other.Name, response.Status, text, err)
		}
	}
}

// The disaster of v0.9.4's walkthrough: all pods are lost, and the documented commands restore
// the cluster.
func TestRestoreWalkthrough(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	minio := stores.MinIO(t, stores.Options{IP: n.HostIP(t)})
	minio.CreateBucket(t, bucket)
	r := &restores{&backups{Namespace: n, t: t, minio: minio}}
	n.ForgetRoles()
	n.Shell("example/rbac/create_role.sh")
	n.Shell("kubectl create -f example/deployment.yaml -f example/etcd-backup-operator/deployment.yaml")
	n.WaitOperator()
	n.Shell("kubectl apply -f example/example-etcd-cluster.yaml")
	cluster := n.Adopt("example-etcd-cluster")
	// Metadata from others.
	n.Shell(`kubectl create configmap owner
kubectl label etcd/example-etcd-cluster team=storage
kubectl annotate etcd/example-etcd-cluster example.com/contact=nobody
kubectl patch etcd/example-etcd-cluster --type=merge -p "{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"$(kubectl get configmap owner -o jsonpath='{.metadata.uid}')\"}]}}"`)
	members := cluster.WaitSettled()
	cluster.Put("kept", "yes")
	n.WaitBackupOperator()
	n.Shell("AWS_DIR=" + r.awsDirectory() + "; kubectl create secret generic aws --from-file=$AWS_DIR/credentials --from-file=$AWS_DIR/config")
	n.Shell(`sed -e 's|<full-s3-path>|mybucket/etcd.backup|g' \
    -e 's|<aws-secret>|aws|g' \
    -e 's|<etcd-cluster-endpoints>|"http://example-etcd-cluster-client:2379"|g' \
    example/etcd-backup-operator/backup_cr.yaml \
    | kubectl create -f -`)
	n.AdoptBackup("example-etcd-cluster-backup").WaitSucceeded(cluster.Object().CreationTimestamp.Time)
	cluster.Put("later", "yes")
	before, services := cluster.Object(), addresses(t, n, cluster.Name)

	n.Shell("kubectl delete pod --force --grace-period=0 -l app=etcd,etcd_cluster=example-etcd-cluster")
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse)
	n.Shell("kubectl create -f example/etcd-restore-operator/deployment.yaml")
	n.WaitRestoreOperator()
	wants(t, n.Shell("kubectl get pods"), "etcd-restore-operator-", "1/1", "Running")
	wants(t, n.Shell("kubectl get crd"), "etcdrestores.etcd.database.coreos.com")
	n.Shell(`sed -e 's|<full-s3-path>|mybucket/etcd.backup|g' \
    -e 's|<aws-secret>|aws|g' \
    example/etcd-restore-operator/restore_cr.yaml \
    | kubectl create -f -`)
	restore := n.AdoptRestore("example-etcd-cluster").WaitSucceeded()
	wants(t, n.Shell("kubectl get etcdrestore"), "example-etcd-cluster", "Succeeded", "true")
	wants(t, n.Shell("kubectl get etcdrestore example-etcd-cluster -o yaml"), "succeeded: true", "etcdRevision: ", "key: mybucket/etcd.backup")

	cluster, restored := r.checkRestored("example-etcd-cluster", restore)
	checkStrange(t, restored, cluster.Pods(), members[0])
	after := cluster.Object()
	if after.UID == before.UID || restore.Status.ReplacedUID != before.UID {
		t.Errorf("cluster %s was to be replaced: now it is %s, and the status says %s", before.UID, after.UID, restore.Status.ReplacedUID)
	}
	if !maps.Equal(after.Labels, before.Labels) || !maps.Equal(after.Annotations, before.Annotations) || after.Labels["team"] != "storage" {
		t.Errorf("labels %v, annotations %v became %v and %v", before.Labels, before.Annotations, after.Labels, after.Annotations)
	}
	if got, want := fmt.Sprint(after.OwnerReferences), fmt.Sprint(before.OwnerReferences); got != want || len(after.OwnerReferences) != 1 {
		t.Errorf("owners %s became %s", want, got)
	}
	if !equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		t.Errorf("spec %+v became %+v", before.Spec, after.Spec)
	}
	if got := addresses(t, n, cluster.Name); !maps.Equal(got, services) {
		t.Errorf("Services %v became %v", services, got)
	}
	n.CheckNoSecretIsTold()
}

// addresses returns the UIDs of a cluster's two Services.
func addresses(t *testing.T, n *harness.Namespace, cluster string) map[types.UID]string {
	t.Helper()
	found := map[types.UID]string{}
	harness.Wait(t, "the watch has brought both Services of "+cluster, harness.Settle, func(context.Context) error {
		clear(found)
		for _, name := range []string{cluster, cluster + "-client"} {
			service := n.Service(name)
			if service == nil {
				return errors.New("there is no Service " + name)
			}
			found[service.UID] = service.Spec.ClusterIP
		}
		return nil
	})
	return found
}

// sum is the SHA-256 of a backup, as etcd appends it and the status reports it.
func sum(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}
