// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestStatusOfAClusterThatIsWell(t *testing.T) {
	w := newWorld(t, nightly())
	code, out, errOut := w.run("status", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	const want = `orders   3.7.3   SERVING   3 of 3 voters healthy   leader orders-a   quorum tolerates 1 loss
MEMBER     ROLE       VERSION   DB      IN USE   LAG   FSYNC p99   NODE / ZONE
orders-a   leader     3.7.3     1.2Gi   61 %     0     2.0 ms      n1 / a
orders-b   follower   3.7.3     1.2Gi   61 %     0     2.0 ms      n2 / b
orders-c   follower   3.7.3     1.2Gi   61 %     0     2.0 ms      n3 / c
Backups    nightly: 6 h ago, revision 80912, verified
`
	if out != want {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

func TestStatusShowsHowBackupsWereProved(t *testing.T) {
	for result, want := range map[api.RestoreTestResult]string{
		api.RestoreTestPassed:  "Backups    nightly: 6 h ago, revision 80912, verified, restored 2 d ago\n",
		api.RestoreTestRunning: "Backups    nightly: 6 h ago, revision 80912, verified, restored 2 d ago\n",
		api.RestoreTestFailed:  "verified, restored 2 d ago, restore test failed !\nAdvice     the last restore test of backup nightly did not pass: it is damaged\n",
	} {
		b := nightly()
		b.Status.RestoreTest = &api.RestoreTestStatus{Result: result, LastSuccessDate: &metav1.Time{Time: b.Status.LastSuccessDate.Add(-42 * time.Hour)}}
		if result == api.RestoreTestFailed {
			b.Status.RestoreTest.Reason = "it is damaged"
		}
		if _, out, _ := newWorld(t, b).run("status", "orders"); !strings.HasSuffix(out, want) {
			t.Errorf("%s: printed\n%s\nwant\n%s", result, out, want)
		}
	}
}

func TestStatusShowsHowFarTheLogIs(t *testing.T) {
	for reason, want := range map[string]string{
		"":         "verified, log up to 30 s ago\n",
		"it hangs": "verified, log up to 30 s ago, log stopped !\nAdvice     the log of changes of backup nightly does not continue: it hangs\n",
	} {
		b := nightly()
		b.Status.Continuous = &api.ContinuousStatus{Recording: reason == "", Reason: reason, NewestDate: &metav1.Time{Time: now.Add(-30 * time.Second)}}
		if _, out, _ := newWorld(t, b).run("status", "orders"); !strings.HasSuffix(out, want) {
			t.Errorf("%q: printed\n%s\nwant\n%s", reason, out, want)
		}
	}
}

// Nobody corrects the status of an operator that has ended.
func TestStatusDoesNotTrustARecordingOfWhichNothingComes(t *testing.T) {
	b := nightly()
	b.Status.Continuous = &api.ContinuousStatus{Recording: true, NewestDate: &metav1.Time{Time: now.Add(-time.Hour)}}
	want := "verified, log up to 60 min ago, log stopped !\nAdvice     the log of changes of backup nightly does not continue: the backup operator has reported nothing since " +
		now.Add(-time.Hour).UTC().Format(time.RFC3339) + ": check that it runs\n"
	if _, out, _ := newWorld(t, b).run("status", "orders"); !strings.HasSuffix(out, want) {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

// The backup operator does not run, or is one of an earlier release.
func TestStatusShowsALogThatNobodyHasBegun(t *testing.T) {
	b := nightly()
	b.Spec.Continuous = &api.ContinuousBackup{}
	want := "verified, log stopped !\nAdvice     the log of changes of backup nightly does not continue: it has not begun yet\n"
	if _, out, _ := newWorld(t, b).run("status", "orders"); !strings.HasSuffix(out, want) {
		t.Errorf("printed\n%s\nwant\n%s", out, want)
	}
}

func TestStatusExitCodes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		code   int
		said   []string
	}{
		"a voter that does not commit": {
			func(w *world) { w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout }, 1,
			[]string{"DEGRADED", "2 of 3 voters healthy", "quorum tolerates no loss", "orders-c: it confirms no reads"},
		},
		"no quorum": {
			func(w *world) {
				w.members["orders-b"].NoQuorum = rpctypes.ErrGRPCTimeout
				w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout
			}, 2,
			[]string{"DOWN", "1 of 3 voters are healthy: a quorum is 2", "no quorum"},
		},
		"a full database": {
			func(w *world) { w.members["orders-b"].Status.Errors = []string{"memberID:2 alarm:NOSPACE "} }, 2,
			[]string{"DOWN", "alarm NOSPACE"},
		},
		"a member less than the size": {
			func(w *world) { w.update(func(c *api.EtcdCluster) { c.Spec.Size = 5 }) }, 1,
			[]string{"DEGRADED", "3 voters, and the spec asks for 5"},
		},
		"a slow disk": {
			func(w *world) { w.serveMetrics("orders-b", 0.05) }, 0,
			[]string{"SERVING", "49.8 ms !", "orders-b: slow disk"},
		},
		"a cluster that contradicts its record": {
			func(w *world) {
				w.update(func(c *api.EtcdCluster) {
					c.Status.Conditions[0] = api.ClusterCondition{Type: api.ClusterConditionAvailable, Status: corev1.ConditionFalse, Reason: "Data went back", Message: "look"}
				})
			}, 1,
			[]string{"DEGRADED", "Data went back: look"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nightly())
			test.change(w)
			code, out, errOut := w.run("status", "orders")
			if code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, errOut)
			}
			contains(t, out, test.said...)
		})
	}
}

func TestStatusOfALostMember(t *testing.T) {
	w := newWorld(t, nightly())
	if err := w.kube.CoreV1().Pods("default").Delete(t.Context(), "orders-b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	code, out, _ := w.run("status", "orders")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	contains(t, out, "orders-b: it has no pod", "2 of 3 voters healthy")
}

func TestStatusWithoutTheRightToConnectIsTheOperators(t *testing.T) {
	w := newWorld(t, nightly())
	w.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "pods/portforward"}, "orders-a", errors.New("no"))
	w.update(func(c *api.EtcdCluster) {
		c.Status.MemberStatuses = []api.MemberStatus{
			{Name: "orders-a", ID: "1", Healthy: true, Leader: true, Version: "3.7.3", DBSize: 5 << 20},
			{Name: "orders-b", ID: "2", Healthy: true, Version: "3.7.3", DBSize: 5 << 20},
			{Name: "orders-c", ID: "3", Problem: "does not answer"},
		}
	})
	code, out, _ := w.run("status", "orders")
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	contains(t, out, "2 of 3 voters healthy", "as the operator last saw them", "forbidden", "orders-c: does not answer")
}

func TestStatusAsJSON(t *testing.T) {
	w := newWorld(t, nightly())
	_, out, _ := w.run("status", "orders", "-o", "json")
	var s summary.Summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if s.State != summary.Serving || s.Leader != "orders-a" || len(s.Members) != 3 || s.Revision != 81500 || s.Backups[0].Revision != 80912 {
		t.Errorf("it holds %+v", s)
	}
	_, out, _ = w.run("status", "orders", "-o", "yaml")
	contains(t, out, "state: SERVING")
	if code, _, errOut := w.run("status", "orders", "-o", "xml"); code != 3 || !strings.Contains(errOut, "json, yaml, wide or name") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestStatusOfAClusterThatIsNotThere(t *testing.T) {
	code, _, errOut := newWorld(t).run("status", "nope")
	if code != 3 || !strings.Contains(errOut, `"nope" not found`) {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestStatusOfAllClusters(t *testing.T) {
	other := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "users", Namespace: "default", UID: "u2"}, Spec: api.ClusterSpec{Size: 1}}
	code, out, _ := newWorld(t, nightly(), other).run("status")
	if code != 2 {
		t.Errorf("exit code %d, want that of the worst", code)
	}
	contains(t, out, "orders   3.7.3   SERVING", "users   -   DOWN", "no operator has seen the EtcdCluster")
}

func TestWatchShowsEachChangeOnce(t *testing.T) {
	w := newWorld(t, nightly())
	ticks := testingclock.NewFakeClock(now)
	w.clock = ticks
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		code int
		out  string
	}
	done := make(chan result, 1)
	go func() {
		code, out, _ := w.runContext(ctx, "status", "orders", "--watch")
		done <- result{code, out}
	}()
	step := func() {
		for !ticks.HasWaiters() {
			select {
			case r := <-done:
				t.Errorf("it has ended: %+v", r)
				return
			case <-time.After(time.Millisecond):
			}
		}
		ticks.Step(2 * time.Second)
	}
	step()
	step()
	for !ticks.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	w.update(func(c *api.EtcdCluster) { c.Spec.Paused = true })
	step()
	for !ticks.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	r := <-done
	if r.code != 0 {
		t.Errorf("exit code %d", r.code)
	}
	if n := strings.Count(r.out, "MEMBER "); n != 2 {
		t.Errorf("%d statuses, want one before the change and one after it:\n%s", n, r.out)
	}
	contains(t, r.out, "PAUSED", "kubectl etcd resume orders")
}

func TestMembersAreListedWithIDs(t *testing.T) {
	w := newWorld(t)
	w.members["orders-b"].Status.IsLearner = true
	for _, m := range w.members {
		m.Agreed = append(m.Agreed[:1:1], &etcdserverpb.Member{ID: 2, Name: "orders-b", IsLearner: true, PeerURLs: []string{"http://orders-b.orders.default.svc:2380"}})
	}
	code, out, errOut := w.run("members", "orders", "-o", "wide")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "orders-a   1    leader", "orders-b   2    learner", "http://orders-b.orders.default.svc:2380", "orders-c   -    not joined")
}

func TestAMemberThatHangsHidesNoOther(t *testing.T) {
	w := newWorld(t, nightly())
	w.silence("orders-b")
	code, out, errOut := w.run("status", "orders")
	if code != 1 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "2 of 3 voters healthy", "quorum tolerates no loss")
}
