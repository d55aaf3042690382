// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// restarted makes the survivor one that has restarted: it serves no clients, and the operator knows it
// by its metrics.
func (w *world) restarted() {
	w.silence("orders-c")
	w.update(func(c *api.EtcdCluster) {
		c.Status.Recovery = &api.RecoveryStatus{LastRevision: 81503, Ways: []api.RecoveryWay{
			{Way: api.RecoverySurvivor, Member: "orders-c", Revision: 81500, RaftIndex: 900, NotServing: true, Message: "orders-c has revision 81500"},
		}}
	})
}

// answers makes the operator answer the annotation with a choice, and with the next one when the annotation
// has been away. Without it, there is no choice.
func (w *world) answers(choices ...api.RecoveryChoice) {
	w.tick()
	seen := false
	w.etcd.PrependReactor("get", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		c := w.stored()
		value := c.Annotations[api.RecoverAnnotation]
		if value == "" && seen {
			choices = choices[1:]
		}
		seen = value != ""
		if c.Status.Recovery == nil {
			c.Status.Recovery = &api.RecoveryStatus{}
		}
		if c.Status.Recovery.Choice = nil; value != "" {
			choices[0].Value = value
			c.Status.Recovery.Choice = &choices[0]
		}
		return true, c, nil
	})
}

// restores makes the restore of the operator's choice succeed.
func (w *world) restores(choice api.RecoveryChoice) {
	w.etcd.PrependReactor("get", "etcdrestores", func(k8stesting.Action) (bool, runtime.Object, error) {
		if asked := w.stored(); asked.Annotations[api.RecoverAnnotation] == "" {
			return false, nil, nil
		}
		return true, &api.EtcdRestore{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{api.RecoveryAnnotation: choice.StartDate}},
			Status:     api.RestoreStatus{Phase: api.RestorePhaseSucceeded, Succeeded: true},
		}, nil
	})
}

var restoring = api.RecoveryChoice{Phase: api.RecoveryRestoring, StartDate: "2026-11-22T12:00:00Z"}

// stored is the EtcdCluster, for a reactor: a request in one would wait for its own end.
func (w *world) stored() *api.EtcdCluster {
	obj, err := w.etcd.Tracker().Get(api.SchemeGroupVersion.WithResource("etcdclusters"), "default", "orders")
	if err != nil {
		return &api.EtcdCluster{}
	}
	return obj.(*api.EtcdCluster).DeepCopy()
}

// The operator has the data of a survivor served, with what its log holds, whether the survivor serves
// clients or not.
func TestASurvivorIsLeftToTheOperator(t *testing.T) {
	for name, change := range map[string]func(*world){"it serves clients": func(*world) {}, "it has restarted": (*world).restarted} {
		t.Run(name, func(t *testing.T) {
			w := lostQuorum(t, 81503, nightly())
			change(w)
			w.answers(restoring)
			w.restores(restoring)
			code, out, errOut := w.run("recover", "orders")
			if code != 0 {
				t.Errorf("exit code %d: %s", code, errOut)
			}
			contains(t, out, "1 of 3 members answer", "survivor orders-c", "81500      at most 3 known revisions, and perhaps later writes", "--from-survivor")
			if strings.Contains(out, "(restarted)") != (name == "it has restarted") {
				t.Errorf("it says\n%s", out)
			}
			code, out, errOut = w.run("recover", "orders", "--from-survivor", "--dry-run")
			contains(t, out+errOut, "This command would set the annotation")
			if w.changedNothing(); code != 0 || len(w.object().Annotations) > 0 {
				t.Errorf("exit code %d, and the annotations are %v", code, w.object().Annotations)
			}
			w.in.WriteString("orders\n")
			code, out, errOut = w.run("recover", "orders", "--from-survivor")
			if code != 0 {
				t.Errorf("exit code %d: %s", code, errOut)
			}
			contains(t, out, "continues from orders-c, revision 81500", "The annotation etcd.database.coreos.com/recover is survivor=orders-c,store=nightly", "Succeeded")
			if got := w.object().Annotations[api.RecoverAnnotation]; got != "survivor=orders-c,store=nightly" {
				t.Errorf("the annotation is %q", got)
			}
		})
	}
}

func TestARecoveryNeedNotBeWaitedFor(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	if code, out, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders", "--wait=false", "-o", "json"); code != 0 || !json.Valid([]byte(out)) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if got := w.object().Annotations[api.RecoverAnnotation]; got != "survivor=orders-c,store=nightly" {
		t.Errorf("the annotation is %q", got)
	}
}

// An annotation that stays would start a recovery later, when nobody expects it.
func TestAChoiceThatTheOperatorRefusesEndsTheCommand(t *testing.T) {
	for phase, kept := range map[api.RecoveryPhase]bool{api.RecoveryRefused: false, api.RecoveryFailed: true} {
		w := lostQuorum(t, 81503, nightly())
		w.answers(api.RecoveryChoice{Phase: phase, Reason: "a quorum is back"})
		if code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders"); code != 1 || !strings.Contains(errOut, "a quorum is back") {
			t.Errorf("%s: exit code %d: %s", phase, code, errOut)
		}
		if got := w.object().Annotations[api.RecoverAnnotation]; (got != "") != kept {
			t.Errorf("%s: the annotation is %q", phase, got)
		}
	}
}

// A choice that has failed stays so until the operator sees no annotation.
func TestAChoiceIsMadeAgain(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	failed := api.RecoveryChoice{Value: "survivor=orders-c,store=nightly", Phase: api.RecoveryFailed, Reason: "a quorum was back"}
	w.update(func(c *api.EtcdCluster) {
		c.Annotations = map[string]string{api.RecoverAnnotation: failed.Value}
		c.Status.Recovery = &api.RecoveryStatus{Choice: &failed}
	})
	w.answers(failed, restoring)
	w.restores(restoring)
	if code, out, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders"); code != 0 || !strings.Contains(out, "Succeeded") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// The operator looks at the annotation later than the command. Until then, the status has the end of the
// automatic recovery.
func TestAChoiceAfterAnAutomaticRecoveryThatFailed(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	w.tick()
	w.restores(restoring)
	failed := api.RecoveryChoice{Value: "survivor=orders-c,store=nightly", Automatic: true, Phase: api.RecoveryFailed, Reason: "members may return"}
	w.update(func(c *api.EtcdCluster) { c.Status.Recovery = &api.RecoveryStatus{Choice: &failed} })
	looks := 0
	w.etcd.PrependReactor("get", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		c := w.stored()
		if value := c.Annotations[api.RecoverAnnotation]; value != "" {
			if looks++; looks >= 3 {
				chosen := restoring
				chosen.Value = value
				c.Status.Recovery.Choice = &chosen
			}
		}
		return true, c, nil
	})
	code, out, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders")
	if code != 0 || !strings.Contains(out, "waiting for the etcd operator") || !strings.Contains(out, "Succeeded") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}
