// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
)

// outOfSight is a cluster with automatic recovery whose members run, and do not answer the operator. A backup has
// begun a minute before that, and has all that the operator knows.
func outOfSight(t *testing.T, refusal error) *lost {
	t.Helper()
	l := loseAllBut(t, 3, nil, "c-a", "c-b", "c-d")
	for _, m := range l.members {
		m.refusal = refusal
	}
	nightly := l.backup("nightly")
	nightly.Status.Key = backupobject.Key(nightly.Spec.S3.Path, 83, noon.Add(-time.Minute))
	nightly.Status.EtcdRevision, nightly.Status.ClusterID = 83, "7"
	if err := l.clusters.Tracker().Update(api.SchemeGroupVersion.WithResource("etcdbackups"), nightly, "ns"); err != nil {
		t.Fatal(err)
	}
	l.recoverItself()
	return l
}

// loseAll loses all pods, and the data with them.
func (l *lost) loseAll() {
	l.t.Helper()
	for name := range l.members {
		if err := l.kube.CoreV1().Pods("ns").Delete(l.t.Context(), name, metav1.DeleteOptions{}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// Members that Kubernetes finds ready have a quorum, and take writes of which the operator learns nothing.
func TestAnAutomaticRecoveryCountsNoTimeInWhichAQuorumMayHaveServed(t *testing.T) {
	unreachable := errors.New("connection refused")
	for name, test := range map[string]struct {
		refusal error
		another bool
	}{
		"the operator does not reach them": {refusal: unreachable},
		"another operator takes over":      {refusal: unreachable, another: true},
		"they refuse its user":             {refusal: rpctypes.ErrAuthFailed},
	} {
		t.Run(name, func(t *testing.T) {
			l := outOfSight(t, test.refusal)
			l.passesUntil(noon.Add(30 * time.Minute))
			if test.another {
				l.c = l.cluster(l.etcdCluster())
			}
			l.passesUntil(noon.Add(time.Hour))
			l.loseAll()
			st := l.passesUntil(noon.Add(2 * time.Hour))
			l.untouched(st, "nobody knows the writes of these")
			if at, err := time.Parse(time.RFC3339, st.LostDate); err != nil || at.Before(noon.Add(58*time.Minute)) {
				t.Errorf("the loss counts from %s, and the members served for an hour", st.LostDate)
			}
		})
	}
}

// The restored cluster would lack the writes that the quorum has taken.
func TestAChoiceEndsIfAQuorumMayServeAgain(t *testing.T) {
	l := outOfSight(t, errors.New("connection refused"))
	ready := func(status corev1.ConditionStatus) {
		for name := range l.members {
			pod := l.pod(name)
			pod.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, status, "")}
			l.update(pod)
		}
	}
	ready(corev1.ConditionFalse)
	l.passesUntil(noon.Add(5 * time.Minute))
	l.edit(func(obj *api.EtcdCluster) {
		obj.Annotations = map[string]string{api.RecoverAnnotation: "backup=nightly"}
	})
	if c := l.passesUntil(noon.Add(6 * time.Minute)).Choice; c == nil || c.Phase != api.RecoveryRestoring {
		t.Fatalf("the choice is %+v", c)
	}
	ready(corev1.ConditionTrue)
	if c := l.passesUntil(noon.Add(7 * time.Minute)).Choice; c.Phase != api.RecoveryFailed || !strings.Contains(c.Reason, "enough members were ready and did not answer the operator") {
		t.Errorf("the choice is %+v", c)
	}
}

// Kubernetes finds the pods of a dead node ready for up to a minute.
func TestALossCountsAlthoughKubernetesSeesItLate(t *testing.T) {
	l := outOfSight(t, errors.New("connection refused"))
	l.passesUntil(noon.Add(50 * time.Second))
	l.loseAll()
	st := l.passesUntil(noon.Add(20 * time.Minute))
	if c := st.Choice; c == nil || c.Phase != api.RecoveryRestoring || c.Value != "backup=nightly" || st.LostDate != noon.Format(time.RFC3339) {
		t.Errorf("the choice is %+v, the plan %+v, and the loss of %s", c, st.Automatic, st.LostDate)
	}
}
