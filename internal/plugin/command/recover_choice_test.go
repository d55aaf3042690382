// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// restarted is a lost quorum whose survivor has restarted: it serves no clients, and the operator knows it
// by its metrics. The operator answers the annotation with a choice.
func restarted(t *testing.T, choice api.RecoveryChoice) *world {
	t.Helper()
	w := lostQuorum(t, 81503, nightly())
	w.silence("orders-c")
	w.update(func(c *api.EtcdCluster) {
		c.Status.Recovery = &api.RecoveryStatus{LastRevision: 81503, Ways: []api.RecoveryWay{
			{Way: api.RecoverySurvivor, Member: "orders-c", Revision: 81500, RaftIndex: 900, NotServing: true, Message: "orders-c has revision 81500"},
		}}
	})
	w.tick()
	w.etcd.PrependReactor("get", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		c := w.stored()
		if value := c.Annotations[api.RecoverAnnotation]; value != "" {
			choice.Value = value
			c.Status.Recovery.Choice = &choice
		}
		return true, c, nil
	})
	return w
}

// stored is the EtcdCluster, for a reactor: a request in one would wait for its own end.
func (w *world) stored() *api.EtcdCluster {
	obj, err := w.etcd.Tracker().Get(api.SchemeGroupVersion.WithResource("etcdclusters"), "default", "orders")
	if err != nil {
		return &api.EtcdCluster{}
	}
	return obj.(*api.EtcdCluster).DeepCopy()
}

func TestASurvivorThatServesNoClientsIsLeftToTheOperator(t *testing.T) {
	w := restarted(t, api.RecoveryChoice{Phase: api.RecoveryRestoring, StartDate: "2026-11-22T12:00:00Z"})
	w.etcd.PrependReactor("get", "etcdrestores", func(k8stesting.Action) (bool, runtime.Object, error) {
		if asked := w.stored(); asked.Annotations[api.RecoverAnnotation] == "" {
			return false, nil, nil
		}
		return true, &api.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.RecoveryAnnotation: "2026-11-22T12:00:00Z"}},
			Status:     api.RestoreStatus{Phase: api.RestorePhaseSucceeded, Succeeded: true},
		}, nil
	})
	code, out, errOut := w.run("recover", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "1 of 3 members answer", "survivor orders-c (restarted)   81500      3 recorded revisions, and later writes", "--from-survivor")
	code, out, errOut = w.run("recover", "orders", "--from-survivor", "--dry-run")
	contains(t, out+errOut, "This command would set the annotation")
	if w.changedNothing(); code != 0 || len(w.object().Annotations) > 0 {
		t.Errorf("exit code %d, and the annotations are %v", code, w.object().Annotations)
	}
	code, out, errOut = w.run("recover", "orders", "--from-survivor", "--confirm", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "orders-c serves no clients", "Succeeded")
	if got := w.object().Annotations[api.RecoverAnnotation]; got != "survivor=orders-c,store=nightly" {
		t.Errorf("the annotation is %q", got)
	}
	w.changedNothing()
}

func TestAChoiceThatTheOperatorRefusesEndsTheCommand(t *testing.T) {
	for name, phase := range map[string]api.RecoveryPhase{"refused": api.RecoveryRefused, "failed": api.RecoveryFailed} {
		w := restarted(t, api.RecoveryChoice{Phase: phase, Reason: "a quorum is back"})
		if code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders"); code != 1 || !strings.Contains(errOut, "a quorum is back") {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
	}
	w := restarted(t, api.RecoveryChoice{})
	if code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders", "--bump-revision", "5"); code != 1 || !strings.Contains(errOut, "chooses the number") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
