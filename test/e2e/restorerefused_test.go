//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// with returns a backup with other metadata.
func (b aBackup) with(key, value string) aBackup {
	metadata := maps.Clone(b.metadata)
	metadata[key] = value
	return aBackup{b.content, metadata}
}

// holding returns the metadata of a backup with another content.
func (b aBackup) holding(content []byte) aBackup {
	return aBackup{content, b.metadata}
}

// ownRights is the manifest of a restore operator with a Role of its own, which the functions
// below change.
const ownRights = "example/rbac/restore-operator.yaml"

// deployWithOwnRights deploys the restore operator with such a Role.
func (r *restores) deployWithOwnRights() {
	r.t.Helper()
	r.Shell("kubectl apply --server-side --force-conflicts -k deploy/crds && kubectl apply -f " + ownRights)
	r.DeployRestoreOperator(func(d *appsv1.Deployment) {
		pod := &d.Spec.Template.Spec
		pod.ServiceAccountName = "etcd-restore-operator"
		pod.Containers[0].Command = append(pod.Containers[0].Command, "-create-crd=false")
	})
}

// takeRight removes a rule from that Role.
func (r *restores) takeRight(verb, resource string) {
	r.t.Helper()
	roles := r.Kube.RbacV1().Roles(r.Name)
	role, err := roles.Get(r.t.Context(), "etcd-restore-operator", metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == verb })
		}
	}
	if _, err := roles.Update(r.t.Context(), role, metav1.UpdateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	harness.Wait(r.t, "the API server knows that the right is gone", time.Minute, func(ctx context.Context) error {
		review, err := r.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + r.Name + ":etcd-restore-operator",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Name, Verb: verb, Resource: resource},
		}}, metav1.CreateOptions{})
		if err == nil && review.Status.Allowed {
			err = errors.New("it does not")
		}
		return err
	})
}

// A restore that is impossible reports why, and the cluster continues undisturbed. The
// operator follows a corrected EtcdRestore at once, and newly granted rights with its next
// attempt.
func TestRestoreThatCanNotBeMadeTouchesNothing(t *testing.T) {
	t.Parallel()
	r := withoutRestoreOperator(t)
	// v0.9.4's Service, which leads to every instance, is still there.
	r.Shell("kubectl create service clusterip etcd-restore-operator --tcp=19999:19999")
	harness.Wait(t, "the endpoints of the old Service", time.Minute, func(ctx context.Context) error {
		_, err := r.Kube.CoreV1().Endpoints(r.Name).Get(ctx, "etcd-restore-operator", metav1.GetOptions{})
		return err
	})
	r.deployWithOwnRights()
	cluster := r.Create(1, etcd36)
	r.backedUp(cluster, "good")
	good := r.take(cluster)
	damaged := append([]byte(nil), good.content...)
	damaged[len(damaged)/2] ^= 1
	r.put("corrupt", good.holding(damaged))
	r.put("truncated", good.holding(good.content[:len(good.content)/2]))
	r.put("empty", good.holding(nil))
	r.put("newer", good.with("etcd-version", etcd37))
	r.SetSecret("wrong", r.credentials("not-the-password"))
	writer := cluster.StartWriter()
	before, pods := cluster.Object(), cluster.Pods()

	key := func(key string) func(*v1beta2.RestoreSpec) {
		return func(s *v1beta2.RestoreSpec) { s.BackupSource = r.source(key) }
	}
	restore := r.CreateRestore(r.spec(cluster.Name, "missing"))
	for _, c := range []struct {
		name  string
		edit  func(*v1beta2.RestoreSpec)
		phase v1beta2.RestorePhase
		words []string
	}{
		{"missing", key("missing"), v1beta2.RestorePhaseRetrying, []string{bucket + "/missing"}},
		{"corrupt", key("corrupt"), v1beta2.RestorePhaseFailed, []string{bucket + "/corrupt", "damaged"}},
		{"truncated", key("truncated"), v1beta2.RestorePhaseFailed, []string{bucket + "/truncated"}},
		{"empty", key("empty"), v1beta2.RestorePhaseFailed, []string{bucket + "/empty", "empty"}},
		{"wrong credentials", func(s *v1beta2.RestoreSpec) { s.S3.Path, s.S3.AWSSecret = bucket+"/good", "wrong" }, v1beta2.RestorePhaseRetrying, []string{"refused"}},
		{"no Secret", func(s *v1beta2.RestoreSpec) { s.S3.AWSSecret = "late" }, v1beta2.RestorePhaseRetrying, []string{"late", "Secret"}},
		{"taken from a newer etcd", key("newer"), v1beta2.RestorePhaseFailed, []string{etcd37, etcd36}},
		{"a template, though there is a cluster", func(s *v1beta2.RestoreSpec) {
			s.BackupSource, s.ClusterTemplate = r.source("good"), template(t, v1beta2.ClusterSpec{Size: 1})
		}, v1beta2.RestorePhaseInvalid, []string{"clusterTemplate"}},
		{"paused", func(s *v1beta2.RestoreSpec) {
			cluster.Update(func(s *v1beta2.ClusterSpec) { s.Paused = true })
			s.ClusterTemplate = nil
		}, v1beta2.RestorePhaseRetrying, []string{"paused"}},
		{"without a right that it needs later", func(s *v1beta2.RestoreSpec) {
			r.takeRight("patch", "services")
			cluster.Update(func(s *v1beta2.ClusterSpec) { s.Paused = false })
			s.OldVolumes = v1beta2.OldVolumesDeleteFirst
		}, v1beta2.RestorePhaseRetrying, []string{"patch services", "apply the roles of the installed release again"}},
	} {
		restore.Edit(c.edit)
		obj := restore.Wait(c.name, harness.Backed, func(obj *v1beta2.EtcdRestore) error {
			if obj.Status.ObservedGeneration != obj.Generation || obj.Status.Phase != c.phase {
				return fmt.Errorf("it is not %s", c.phase)
			}
			for _, word := range c.words {
				if !strings.Contains(obj.Status.Reason, word) {
					return fmt.Errorf("its reason lacks %q", word)
				}
			}
			return nil
		})
		if len(obj.Finalizers) > 0 || obj.Status.Succeeded || obj.Status.Cluster != nil {
			t.Errorf("%s: finalizers %v, status %+v", c.name, obj.Finalizers, obj.Status)
		}
	}
	now, err := r.EtcdClusters.EtcdV1beta2().EtcdClusters(r.Name).Get(t.Context(), cluster.Name, metav1.GetOptions{})
	if err != nil || now.UID != before.UID || now.DeletionTimestamp != nil || len(now.Finalizers) > 0 || len(now.Annotations) > 0 {
		t.Errorf("the cluster was touched: %+v, %v", now.ObjectMeta, err)
	}
	if err := sameUIDs(pods, cluster.Pods()); err != nil {
		t.Errorf("the cluster was touched: %v", err)
	}
	for _, pod := range cluster.Pods() {
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount > 0 {
				t.Errorf("%s in %s restarted %d times", status.Name, pod.Name, status.RestartCount)
			}
		}
	}
	cluster.VerifyWrites(writer)

	r.Shell("kubectl apply -f " + ownRights)
	r.checkRestored(cluster.Name, restore.WaitSucceeded())
	r.CheckNoSecretIsTold()
}

// The EtcdCluster itself is gone. A template recreates it from the newest good backup before a
// time, with a higher revision. A watch from an older revision must fail, so that its client
// reads everything again.
func TestRestoreOfAClusterThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRestores(t)
	cluster := r.Create(1, etcd36)
	cluster.WaitSettled()
	cluster.Put("kept", "yes")
	good := r.take(cluster)
	r.put("etcd_v7_2026-01-01-00:00:00", good) // older
	cluster.Put("newer", "yes")
	good = r.take(cluster)
	r.put("etcd_v9_2026-01-02-00:00:00", good)
	r.put("etcd_v10_2026-01-03-00:00:00", good.holding(good.content[:len(good.content)-100]))
	cluster.Put("later", "yes")
	r.put("etcd_v11_2026-01-05-00:00:00", r.take(cluster)) // too late
	r.put("etcd2_v12_2026-01-03-12:00:00", good)           // another cluster's
	seen := revision(t, cluster)
	cluster.Delete()
	cluster.WaitGone(harness.Settle)

	spec := r.spec(cluster.Name, "etcd")
	restore := r.CreateRestore(spec)
	restore.Wait("it asks for a template", harness.Backed, func(obj *v1beta2.EtcdRestore) error {
		if !strings.Contains(obj.Status.Reason, "clusterTemplate") {
			return errors.New("it does not")
		}
		return nil
	})
	before := metav1.NewTime(time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC))
	restore.Edit(func(s *v1beta2.RestoreSpec) {
		s.Pick, s.Before, s.BumpRevision = v1beta2.RestorePickNewest, &before, 1_000_000
		s.ClusterTemplate = template(t, v1beta2.ClusterSpec{Size: 1, Version: etcd36})
		s.ClusterTemplate.Metadata.Labels = map[string]string{"team": "storage"}
	})
	obj := restore.WaitSucceeded()
	if got := obj.Status.Backup; got.Key != bucket+"/etcd_v9_2026-01-02-00:00:00" || got.SHA256 != sum(good.content) || got.EtcdVersion != etcd36 {
		t.Errorf("the backup that was chosen: %+v", got)
	}
	if passed := fmt.Sprint(obj.Status.PassedOver); !strings.Contains(passed, "etcd_v10_2026-01-03-00:00:00") {
		t.Errorf("passed over: %s", passed)
	}
	cluster, _ = r.checkRestored(cluster.Name, obj)
	if got := cluster.Get("newer"); got != "yes" {
		t.Errorf("the newest backup's key is %q", got)
	}
	if object := cluster.Object(); object.Labels["team"] != "storage" || len(object.Annotations) > 0 {
		t.Errorf("labels %v, annotations %v", object.Labels, object.Annotations)
	}
	if now := revision(t, cluster); now < 1_000_000 {
		t.Errorf("the revision is %d", now)
	}
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer := <-client.Watch(ctx, "kept", clientv3.WithRev(seen)); !errors.Is(answer.Err(), rpctypes.ErrCompacted) {
		t.Errorf("a watch from revision %d, before the restore, gets %+v", seen, answer)
	}
	// The restore does not run twice: it must not recreate a cluster that the user deletes.
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
	r.CrashRestoreOperator()
	r.WaitRestoreOperator()
	harness.Holds(t, "the cluster stays deleted", 5*time.Second, func(context.Context) error {
		if cluster.Object() != nil {
			return errors.New("there is one")
		}
		return nil
	})
}

// revision returns a cluster's current revision.
func revision(t *testing.T, cluster *harness.Cluster) int64 {
	t.Helper()
	var now int64
	harness.Wait(t, "the revision", harness.Settle, func(ctx context.Context) error {
		client, err := cluster.Client()
		if err != nil {
			return err
		}
		defer client.Close()
		got, err := client.Get(ctx, "kept")
		if err == nil {
			now = got.Header.Revision
		}
		return err
	})
	return now
}
