// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/etcd-operator/etcd-operator/internal/plugin/recovery"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// lostQuorum is a world in which orders-c alone is left, at revision 81500. The operator
// recorded a revision.
func lostQuorum(t *testing.T, revision int64, objects ...runtime.Object) *world {
	t.Helper()
	w := newWorld(t, objects...)
	for _, name := range names {
		w.members[name].NoQuorum = errors.New("etcdserver: no leader")
		w.members[name].Status.Leader = 0
	}
	for _, name := range names[:2] {
		if err := w.kube.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.update(func(c *api.EtcdCluster) { c.Status.Record = recorded(revision) })
	return w
}

// recorded is what the operator has recorded of the three members.
func recorded(revision int64) *api.ClusterRecord {
	return &api.ClusterRecord{
		ClusterID: "63", Revision: revision, RaftIndex: 1000, LastUpdateTime: "2026-11-22T11:58:00Z",
		Members: []api.RecordedMember{{ID: "1", Name: "orders-a"}, {ID: "2", Name: "orders-b"}, {ID: "3", Name: "orders-c"}},
	}
}

func TestTheWaysOutOfALostQuorum(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-a", Namespace: "default", Labels: map[string]string{"app": "etcd", "etcd_cluster": "orders"}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	w := lostQuorum(t, 81503, nightly(), claim)
	if _, err := w.kube.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	code, out, errOut := w.run("recover", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out,
		"EtcdCluster orders has lost its quorum: 1 of 3 members answer, and a quorum is 2.",
		"The operator recorded revision 81503 at 2026-11-22T11:58:00Z.",
		"Missing: orders-a: it has no pod; its volume is Bound, and may hold its data",
		"Missing: orders-b: it has no pod\n",
		"bring the missing members back   -          nothing",
		"survivor orders-c                81500      at most 3 known revisions, and perhaps later writes",
		"backup nightly                   80912      591 known revisions, and later writes: all since 2026-11-22T06:00:00Z (6 h ago)",
		"kubectl etcd recover orders --from-survivor -n default",
		"kubectl etcd restore orders --newest --from nightly -n default")
	_, out, _ = w.run("recover", "orders", "-o", "json")
	var report recovery.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || len(report.Survivors) != 1 || report.Survivors[0].Behind != 3 || report.Backups[0].Behind != 591 {
		t.Errorf("the report is %s: %v", out, err)
	}
	_, out, _ = w.run("status", "orders")
	contains(t, out, "the quorum is lost", "kubectl etcd recover orders -n default")

	// What the operator has seen since the record counts, and its ways out are shown.
	w.update(func(c *api.EtcdCluster) {
		c.Status.Recovery = &api.RecoveryStatus{
			LastRevision: 81510, Ways: []api.RecoveryWay{{Way: api.RecoverySurvivor, Member: "orders-c", Message: "orders-c has revision 81500"}},
			Choice: &api.RecoveryChoice{Value: "survivor=orders-c", Phase: api.RecoveryBackingUp, Reason: "why", Message: "what is lost"},
		}
	})
	_, out, _ = w.run("recover", "orders")
	contains(t, out, "The operator recorded revision 81503 at", "Revision 81510 is known to be committed.", "at most 10 known revisions, and perhaps later writes")
	_, out, _ = w.run("status", "orders")
	contains(t, out, "Way out Survivor: orders-c has revision 81500", "Recovery survivor=orders-c: BackingUp: why. What it restores and loses: what is lost")
}

// Two recoveries at a time would replace the cluster twice.
func TestARecoveryOfTheOperatorComesFirst(t *testing.T) {
	for name, status := range map[string]*api.RecoveryStatus{
		"automatic": {Automatic: &api.AutomaticRecovery{Phase: api.AutomaticWaiting, Value: "survivor=orders-c", Message: "the operator takes it at noon"}},
		"chosen":    {Choice: &api.RecoveryChoice{Phase: api.RecoveryRestoring, Value: "survivor=orders-c", Reason: "the operator takes it at noon"}},
	} {
		w := lostQuorum(t, 81503, nightly())
		w.update(func(c *api.EtcdCluster) { c.Status.Recovery = status })
		_, out, _ := w.run("recover", "orders")
		contains(t, out, "the operator takes it at noon")
		code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders")
		if code != 1 || !strings.Contains(errOut, "the operator takes the way out survivor=orders-c") {
			t.Errorf("%s: exit code %d: %s", name, code, errOut)
		}
	}
	w := lostQuorum(t, 81503, nightly())
	w.update(func(c *api.EtcdCluster) {
		c.Status.Recovery = &api.RecoveryStatus{Automatic: &api.AutomaticRecovery{Phase: api.AutomaticBlocked, Message: "nobody knows what is lost"}}
	})
	if code, out, errOut := w.run("recover", "orders", "--from-survivor", "--dry-run"); code != 0 || !strings.Contains(out+errOut, "nobody knows what is lost") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// Members without pods and volumes have no data: nobody can bring them back.
func TestMembersThatCannotReturn(t *testing.T) {
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "etcd", "etcd_cluster": "orders"}},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	for name, test := range map[string]struct {
		objects []runtime.Object
		change  func(*world)
		offered bool
	}{
		"no pod and no volume":     {},
		"a lost volume":            {objects: []runtime.Object{claim("orders-a", corev1.ClaimLost)}},
		"a volume never bound":     {objects: []runtime.Object{claim("orders-a", corev1.ClaimPending)}},
		"a volume":                 {objects: []runtime.Object{claim("orders-a", corev1.ClaimBound)}, offered: true},
		"volumes that nobody sees": {change: func(w *world) { w.hideVolumes(); w.persistent() }, offered: true},
		"no volumes, by the spec":  {change: (*world).hideVolumes},
		"a pod that waits": {change: func(w *world) {
			pod := w.pod("orders-a", "n1")
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			w.create(pod)
		}, offered: true},
		"a pod that has ended": {change: func(w *world) {
			pod := w.pod("orders-a", "n1")
			pod.Status = corev1.PodStatus{Phase: corev1.PodFailed}
			w.create(pod)
		}},
	} {
		w := lostQuorum(t, 81503, append(test.objects, nightly())...)
		if test.change != nil {
			test.change(w)
		}
		_, out, errOut := w.run("recover", "orders")
		contains(t, out, "survivor orders-c")
		if offered := strings.Contains(strings.ToLower(out), "bring the missing members back"); offered != test.offered {
			t.Errorf("%s: the return is offered: %t\n%s%s", name, offered, out, errOut)
		}
	}
}

func (w *world) hideVolumes() {
	w.kube.PrependReactor("list", "persistentvolumeclaims", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "", errors.New("no"))
	})
}

func (w *world) persistent() {
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	})
}

func TestASurvivorThatHoldsWhatIsRecorded(t *testing.T) {
	_, out, _ := lostQuorum(t, 81500, nightly()).run("recover", "orders")
	contains(t, out, "no known revision; perhaps the last writes before the loss")
}

func TestNobodyIsLeft(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	if err := w.kube.CoreV1().Pods("default").Delete(t.Context(), "orders-c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := w.run("recover", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "0 of 3 members answer", "Missing: orders-c: it has no pod", "backup nightly")
	if strings.Contains(out, "--from-survivor") {
		t.Errorf("it offers a survivor:\n%s", out)
	}
	code, _, errOut = w.run("recover", "orders", "--from-survivor", "--confirm", "orders")
	if code != 1 || !strings.Contains(errOut, "no survivor can be used") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	w.changedNothing()
}

// Where nobody has a quorum, nodes are often busy.
func TestASurvivorMayTakeItsTime(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	w.members["orders-c"].Slow = 6 * time.Second
	_, out, _ := w.run("recover", "orders")
	contains(t, out, "1 of 3 members answer", "survivor orders-c")
}

func TestAnUnfitSurvivor(t *testing.T) {
	for want, change := range map[string]func(*etcdserverpb.StatusResponse){
		"it is a learner":               func(s *etcdserverpb.StatusResponse) { s.IsLearner = true },
		"it belongs to another cluster": func(s *etcdserverpb.StatusResponse) { s.Header.ClusterId = 7 },
		"it has the alarm CORRUPT": func(s *etcdserverpb.StatusResponse) {
			s.Errors = []string{`memberID:3 alarm:CORRUPT `}
		},
	} {
		w := lostQuorum(t, 81500, nightly())
		change(w.members["orders-c"].Status)
		_, out, _ := w.run("recover", "orders")
		contains(t, out, "cannot be used: "+want)
		if code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders"); code != 1 || !strings.Contains(errOut, "no survivor can be used") {
			t.Errorf("%s: exit code %d: %s", want, code, errOut)
		}
		w.changedNothing()
	}
}

func TestAClusterWithAQuorumIsNotRecovered(t *testing.T) {
	for _, args := range [][]string{{"recover", "orders"}, {"recover", "orders", "--from-survivor", "--confirm", "orders"}} {
		w := newWorld(t, nightly())
		w.silence("orders-a")
		if code, out, errOut := w.run(args...); code != 1 || !strings.Contains(errOut, "the cluster has a quorum") || out != "" {
			t.Errorf("exit code %d: %s%s", code, out, errOut)
		}
		w.changedNothing()
	}
}

// Without the operator's Secret, the plugin knows nothing of the members: they may be well.
func TestMembersThatCannotBeAskedAreNotLost(t *testing.T) {
	for name, status := range map[string]*api.RecoveryStatus{
		"no loss was reported": nil,
		"an earlier choice":    {Choice: &api.RecoveryChoice{Phase: api.RecoveryFailed, Value: "survivor=orders-c", Reason: "the cluster has a quorum"}},
	} {
		w := newWorld(t, nightly())
		w.update(func(c *api.EtcdCluster) {
			withTLS(c)
			c.Status.Record, c.Status.Recovery = recorded(81503), status
		})
		for _, args := range [][]string{{"recover", "orders"}, {"recover", "orders", "--from-survivor", "--confirm", "orders"}} {
			code, out, errOut := w.run(args...)
			if code != 1 || !strings.Contains(errOut, "the plugin cannot ask the members: read Secret client") || out != "" {
				t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
			}
		}
		w.changedNothing()
	}
}

// The operator has the Secret that the user lacks. What it reports of survivors counts.
func TestTheOperatorReportsALossToAUserWhoCannotAsk(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	w.update(func(c *api.EtcdCluster) {
		withTLS(c)
		c.Status.Recovery = &api.RecoveryStatus{
			LastRevision: 81503, LostDate: "2026-11-22T11:59:00Z", LastUpdateTime: "2026-11-22T11:59:30Z",
			Ways: []api.RecoveryWay{{Way: api.RecoverySurvivor, Member: "orders-c", Revision: 81502, RaftIndex: 1000}},
		}
	})
	code, out, errOut := w.run("recover", "orders")
	if code != 0 || !strings.HasPrefix(out, "The plugin cannot ask the members: read Secret client") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	contains(t, out, "What follows is the operator's report of 2026-11-22T11:59:30Z.\n",
		"1 of 3 members answer", "survivor orders-c   81502 ", "backup nightly", "recover orders --from-survivor")
	if strings.Contains(out, "(restarted)") || strings.Contains(out, "cannot be used") {
		t.Errorf("it says\n%s", out)
	}
	_, out, _ = w.run("recover", "orders", "-o", "json")
	contains(t, out, `"notAsked": "read Secret client`)
}

func TestARecoveryThatIsRefused(t *testing.T) {
	for want, args := range map[string][]string{
		`"order" is not "orders"`:    {"--confirm", "order"},
		"the backup of the survivor": {"--confirm", "orders", "--store", "weekly"},
		"nobody typed the name":      {},
	} {
		w := lostQuorum(t, 81500, nightly())
		if code, _, errOut := w.run(append([]string{"recover", "orders", "--from-survivor"}, args...)...); code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("exit code %d, want %q: %s", code, want, errOut)
		}
		w.changedNothing()
	}
	w := lostQuorum(t, 81500)
	if code, _, errOut := w.run("recover", "orders", "--from-survivor", "--confirm", "orders"); code != 1 || !strings.Contains(errOut, "the backup of the survivor needs a store") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestADryRunOfARecoveryChangesNothing(t *testing.T) {
	w := lostQuorum(t, 81500, nightly())
	code, out, errOut := w.run("recover", "orders", "--from-survivor", "--dry-run")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "survivor orders-c", "would set the annotation etcd.database.coreos.com/recover to survivor=orders-c,store=nightly")
	w.changedNothing()
}

func (w *world) changedNothing() {
	w.t.Helper()
	for _, a := range append(w.etcd.Actions(), w.kube.Actions()...) {
		// The test itself deletes pods, creates claims and updates the EtcdCluster.
		if (a.GetVerb() == "create" || a.GetVerb() == "patch") && a.GetResource().Group == api.GroupName {
			w.t.Errorf("the command has sent %s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

func TestARecoveryNeedsNoRightOnVolumes(t *testing.T) {
	w := lostQuorum(t, 81500, nightly())
	w.hideVolumes()
	if code, _, errOut := w.run("recover", "orders"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// Without an answer, the members on record count, and a learner among them has no vote.
func TestALearnerOnRecordIsNoVoter(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	w.silence("orders-c")
	w.update(func(c *api.EtcdCluster) {
		c.Status.MemberStatuses = []api.MemberStatus{{ID: "3", Name: "orders-c", Learner: true}}
	})
	_, out, _ := w.run("recover", "orders")
	contains(t, out, "0 of 2 members answer, and a quorum is 2")
}
