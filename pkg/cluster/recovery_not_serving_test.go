// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// restarted is a cluster whose only survivor has restarted: it serves no clients.
func restarted(t *testing.T) *lost {
	t.Helper()
	l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
	l.withoutServer()
	l.members["a"].refusal = errors.New("connection refused")
	l.members["a"].metrics = &etcd.Status{MemberID: 1, Version: "3.6.16", RaftIndex: 500, RaftApplied: 500, Revision: 80}
	return l
}

// withoutServer takes the container away that serves the data of the survivor.
func (l *lost) withoutServer() {
	l.t.Helper()
	pod := l.survivor()
	pod.Spec.EphemeralContainers, pod.Status.EphemeralContainerStatuses = nil, nil
	l.update(pod)
}

func (l *lost) survivor() *corev1.Pod { return l.pod("a") }

func (l *lost) pod(name string) *corev1.Pod {
	l.t.Helper()
	pod, err := l.kube.CoreV1().Pods("ns").Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return pod
}

func TestASurvivorThatServesNoClientsIsServedByAContainer(t *testing.T) {
	l := restarted(t)
	l.pass()
	l.clock.Step(10 * time.Second)
	st := l.pass()
	if len(st.Ways) == 0 || !st.Ways[0].NotServing || st.Ways[0].Revision != 80 || !strings.HasPrefix(st.Ways[0].Message, "a has revision 80 since its restart, and serves no clients") {
		t.Errorf("the ways out are %+v", st.Ways)
	}
	if st.Choice == nil || st.Choice.Phase != api.RecoveryBackingUp || st.Choice.RaftIndex != 500 || !strings.Contains(st.Choice.Reason, "a container of its pod is to serve its data") {
		t.Fatalf("the choice is %+v", st.Choice)
	}
	added := l.survivor().Spec.EphemeralContainers
	if len(added) != 1 || added[0].Name != "serve-data-1" || added[0].Image != l.cfg.OperatorImage || !slices.Contains(added[0].Command, "-data-dir=/var/etcd/data") ||
		len(added[0].VolumeMounts) != 1 || !added[0].VolumeMounts[0].ReadOnly {
		t.Fatalf("the containers are %+v", added)
	}
	// Another operator takes over, and the kubelet takes its time.
	l.c = l.cluster(l.etcdCluster())
	for range 3 {
		l.clock.Step(10 * time.Second)
		l.pass()
	}
	if n := l.count("create", "etcdbackups"); n != 0 || len(l.survivor().Spec.EphemeralContainers) != 1 {
		t.Errorf("there are %d EtcdBackups, and the containers %+v", n, l.survivor().Spec.EphemeralContainers)
	}
	pod := l.survivor()
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "serve-data-1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	l.update(pod)
	l.clock.Step(10 * time.Second)
	l.pass()
	if n := l.count("create", "etcdbackups"); n != 1 {
		t.Errorf("there are %d EtcdBackups", n)
	}
}

// The log of a survivor may hold acknowledged writes that it has not applied. Its own snapshot lacks them.
func TestALogIsServedForASurvivorThatServesClients(t *testing.T) {
	for name, ends := range map[string]bool{"the container runs": true, "the container never runs": false} {
		l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		l.withoutServer()
		l.pass()
		for range 12 {
			l.clock.Step(10 * time.Second)
			l.pass()
		}
		if n := l.count("create", "etcdbackups"); n != 0 || len(l.survivor().Spec.EphemeralContainers) != 1 {
			t.Fatalf("%s: there are %d EtcdBackups, and the containers %+v", name, n, l.survivor().Spec.EphemeralContainers)
		}
		if ends {
			l.serveData(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
		} else {
			l.clock.Step(10 * time.Second)
		}
		l.pass()
		if n := l.count("create", "etcdbackups"); n != 1 {
			t.Errorf("%s: there are %d EtcdBackups", name, n)
		}
	}
}

func TestAMissingRightToServeASurvivorIsNamed(t *testing.T) {
	l := restarted(t)
	l.kube.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "ephemeralcontainers" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("no"))
	})
	l.pass()
	l.clock.Step(10 * time.Second)
	l.watch()
	if _, err := l.c.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "patch pods/ephemeralcontainers") {
		t.Errorf("the error is %v", err)
	}
}

// The backup that a container has served may be of another cluster: the metrics name none.
func TestTheBackupOfASurvivorIsOfItsCluster(t *testing.T) {
	for id, fails := range map[string]bool{"": false, "0000000000000007": false, "0000000000000008": true} {
		l := loseQuorum(t, map[string]string{api.RecoverAnnotation: "survivor=a"})
		l.pass()
		l.clock.Step(10 * time.Second)
		once := l.backup(l.pass().Choice.Backup)
		once.Status = api.BackupStatus{Succeeded: true, Uncertain: true, EtcdRevision: 80, ClusterID: id, Key: once.Spec.S3.Path}
		if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), once, "ns"); err != nil {
			t.Fatal(err)
		}
		l.clock.Step(10 * time.Second)
		if c := l.pass().Choice; (c.Phase == api.RecoveryFailed) != fails || fails && !strings.Contains(c.Reason, "its cluster ID is 8, and 7 is recorded") {
			t.Errorf("with the ID %q: %+v", id, c)
		}
	}
}
