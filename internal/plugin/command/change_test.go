// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// tick moves the clock whenever a command waits.
func (w *world) tick() {
	ticking := testingclock.NewFakeClock(now)
	w.clock = ticking
	done := w.t.Context().Done()
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				if ticking.HasWaiters() {
					ticking.Step(time.Second)
				}
			}
		}
	}()
}

func (w *world) object() *api.EtcdCluster {
	w.t.Helper()
	obj, err := w.etcd.EtcdV1beta2().EtcdClusters("default").Get(w.t.Context(), "orders", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	w.tick()
	w.etcd.PrependReactor("patch", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		w.cluster.Spec.Paused, w.cluster.Status.ControlPaused = true, true
		clusters := api.SchemeGroupVersion.WithResource("etcdclusters")
		return true, w.cluster, w.etcd.Tracker().Update(clusters, w.cluster, "default")
	})
	code, out, errOut := w.run("pause", "orders")
	if code != 0 || !strings.HasSuffix(out, "etcdcluster/orders paused\n") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	code, out, _ = w.run("status", "orders")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "PAUSED")
}

// The restart of an API server takes some seconds, and a restore half an hour.
func TestAnAPIServerThatRestartsEndsNoWait(t *testing.T) {
	w := newWorld(t)
	w.tick()
	asked := 0
	w.etcd.PrependReactor("get", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		switch asked++; asked {
		case 2:
			return true, nil, &url.Error{Op: "Get", URL: "https://prod:6443", Err: errors.New("connection refused")}
		case 3:
			return true, nil, apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
		case 4:
			paused := w.cluster.DeepCopy()
			paused.Status.ControlPaused = true
			return true, paused, nil
		default:
			return false, nil, nil
		}
	})
	code, out, errOut := w.run("pause", "orders")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "the API server does not answer: Get \"https://prod:6443\": connection refused", "etcdserver: leader changed", "etcdcluster/orders paused")
}

func TestCtrlCInTheMiddleOfALookSaysWhatBecomesOfTheWork(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	w.etcd.PrependReactor("get", "etcdclusters", func(k8stesting.Action) (bool, runtime.Object, error) {
		if asked++; asked == 2 {
			cancel()
			return true, nil, &url.Error{Op: "Get", URL: "https://prod:6443", Err: context.Canceled}
		}
		return false, nil, nil
	})
	code, _, errOut := w.runContext(ctx, "pause", "orders")
	if code != interrupted || !strings.Contains(errOut, "stopped waiting: the operator continues without this command") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestPauseWaitsForTheOperator(t *testing.T) {
	w := newWorld(t)
	w.tick()
	code, out, errOut := w.run("pause", "orders", "--timeout", "15s")
	if code != 1 || !strings.Contains(out, "0s  waiting for the operator\n") || !strings.Contains(out, "10s  waiting for the operator; kubectl etcd doctor -n default reports") ||
		!strings.Contains(errOut, "not done after 15s") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if !w.object().Spec.Paused {
		t.Error("the spec does not say it")
	}
	if code, _, _ := w.run("resume", "orders", "--wait=false"); code != 0 || w.object().Spec.Paused {
		t.Errorf("exit code %d", code)
	}
}

func TestMoveLeaderAsksTheLeader(t *testing.T) {
	w := newWorld(t)
	w.tick()
	w.members["orders-b"].Status.RaftAppliedIndex = 900
	code, _, errOut := w.run("move-leader", "orders")
	moves := w.members["orders-a"].Changes()
	if len(moves) != 1 {
		t.Fatalf("exit code %d, %s; the leader was asked %v", code, errOut, moves)
	}
	if move, ok := moves[0].(*etcdserverpb.MoveLeaderRequest); !ok || move.TargetID != 3 {
		t.Errorf("it was asked %v: the follower that lags least is 3", moves[0])
	}
	if code != 1 || !strings.Contains(errOut, "not done after 30s") {
		t.Errorf("the leader has not moved, and the exit code is %d: %s", code, errOut)
	}
}

func TestMoveLeaderToOneThatLeadsOrCannot(t *testing.T) {
	w := newWorld(t)
	if code, out, _ := w.run("move-leader", "orders", "orders-a"); code != 0 || out != "orders-a leads already\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	w.tick()
	w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout
	for member, want := range map[string]string{"orders-c": "nothing was changed; last seen: orders-c cannot lead: it is not healthy", "orders-x": "has no member orders-x"} {
		if code, _, errOut := w.run("move-leader", "orders", member); code != 1 || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit code %d: %s", member, code, errOut)
		}
	}
	for name, m := range w.members {
		if changes := m.Changes(); len(changes) > 0 {
			t.Errorf("%s was asked %v", name, changes)
		}
	}
}

// Followers without processor time miss a look.
func TestMoveLeaderWaitsForAHealthyFollower(t *testing.T) {
	w := newWorld(t)
	w.tick()
	for _, name := range []string{"orders-b", "orders-c"} {
		w.members[name].NoQuorum = rpctypes.ErrGRPCTimeout
	}
	looks := 0
	w.kube.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		if looks++; looks == 3 {
			w.members["orders-c"].NoQuorum = nil
		}
		return false, nil, nil
	})
	_, out, errOut := w.run("move-leader", "orders")
	contains(t, out, "there is no healthy follower that could lead")
	moves := w.members["orders-a"].Changes()
	if len(moves) != 1 {
		t.Fatalf("%s; the leader was asked %v", errOut, moves)
	}
	if move, ok := moves[0].(*etcdserverpb.MoveLeaderRequest); !ok || move.TargetID != 3 {
		t.Errorf("it was asked %v: only 3 can lead", moves[0])
	}
}

// Between the look and the request, etcd may elect another leader.
func TestMoveLeaderAsksTheNextLeader(t *testing.T) {
	w := newWorld(t)
	w.tick()
	w.members["orders-a"].Refusal = rpctypes.ErrGRPCNotLeader
	looks := 0
	w.kube.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		if looks++; looks == 2 {
			for _, m := range w.members {
				m.Status.Leader = 2
			}
		}
		return false, nil, nil
	})
	_, out, errOut := w.run("move-leader", "orders", "orders-c")
	contains(t, out, "orders-a does not lead any more")
	moves := w.members["orders-b"].Changes()
	if len(moves) != 1 {
		t.Fatalf("%s%s; the new leader was asked %v", out, errOut, moves)
	}
	if move, ok := moves[0].(*etcdserverpb.MoveLeaderRequest); !ok || move.TargetID != 3 {
		t.Errorf("it was asked %v, and not for orders-c", moves[0])
	}
}

func TestReplaceDeletesThePodThatItLookedAt(t *testing.T) {
	w := newWorld(t)
	var deleted k8stesting.DeleteAction
	w.kube.PrependReactor("delete", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		deleted, _ = a.(k8stesting.DeleteAction)
		return false, nil, nil
	})
	code, out, errOut := w.run("replace", "orders-b", "--wait=false")
	if code != 0 || out != "pod/orders-b deleted\n" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if p := deleted.GetDeleteOptions().Preconditions; p == nil || p.UID == nil || *p.UID != "pod-uid" {
		t.Errorf("the precondition is %v", p)
	}
}

func TestReplaceKeepsTheQuorum(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		member string
		args   []string
		want   string
	}{
		"another one is ill":     {func(w *world) { w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout }, "orders-b", nil, "1 of 3 voters are healthy, and a quorum is 2"},
		"nobody can be asked":    {func(w *world) { w.refuse = apierrors.NewForbidden(api.Resource("pods"), "x", nil) }, "orders-b", nil, "cannot ask the members"},
		"the operator is paused": {func(w *world) { w.update(func(c *api.EtcdCluster) { c.Spec.Paused = true }) }, "orders-b", nil, "paused"},
		"there is no volume":     {func(*world) {}, "orders-b", []string{"--with-volume"}, "have no volumes"},
		"data may have been lost": {func(w *world) {
			w.update(func(c *api.EtcdCluster) {
				c.Status.Conditions[0].Status, c.Status.Conditions[0].Reason = corev1.ConditionFalse, "Data went back"
			})
		}, "orders-b", nil, "data may be lost"},
	} {
		w := newWorld(t)
		test.change(w)
		code, out, errOut := w.run(append([]string{"replace", test.member}, test.args...)...)
		if code != 1 || !strings.Contains(errOut, test.want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
		if _, err := w.kube.CoreV1().Pods("default").Get(t.Context(), test.member, metav1.GetOptions{}); err != nil {
			t.Errorf("%s: the pod is gone: %v", name, err)
		}
	}
}

// While leadership moves, another member may fail, or the pod may give way to another one.
func TestReplaceLooksAgainAfterTheLeaderHasMoved(t *testing.T) {
	for want, change := range map[string]func(*world){
		"1 of 3 voters are healthy, and a quorum is 2": func(w *world) { w.members["orders-b"].NoQuorum = rpctypes.ErrGRPCTimeout },
		"its pod is gone or replaced":                  func(w *world) { w.recreated("orders-a") },
	} {
		w := newWorld(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "orders-a", Namespace: "default", UID: "claim"}})
		w.tick()
		w.persistent()
		w.members["orders-b"].Status.RaftAppliedIndex = 900
		looks := 0
		w.kube.PrependReactor("list", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
			if looks++; looks == 3 { // the first one after the request to move
				for _, m := range w.members {
					m.Status.Leader = 3
				}
				change(w)
			}
			return false, nil, nil
		})
		code, out, errOut := w.run("replace", "orders-a", "--with-volume", "--wait=false")
		if code != 1 || !strings.Contains(errOut, "orders-a is not replaced") || !strings.Contains(errOut, want) {
			t.Errorf("want %q, exit code %d: %s%s", want, code, out, errOut)
		}
		contains(t, out, "orders-c leads, in place of orders-a")
		if _, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "orders-a", metav1.GetOptions{}); err != nil {
			t.Errorf("the pod is gone: %v", err)
		}
		if _, err := w.kube.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "orders-a", metav1.GetOptions{}); err != nil {
			t.Errorf("the volume is gone: %v", err)
		}
	}
}

// recreated puts another pod of the same name in the place of a pod, in a reactor.
func (w *world) recreated(name string) {
	pod := w.pod(name, "n1")
	pod.UID = "another"
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "default"); err != nil {
		w.t.Error(err)
	}
}

func TestReplaceOfTheOneThatIsIll(t *testing.T) {
	w := newWorld(t)
	w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout
	code, out, errOut := w.run("replace", "orders-c", "--dry-run")
	if code != 0 || !strings.Contains(out, "would delete pod/orders-c: 2 of 3 voters stay healthy") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := w.run("replace", "orders-c", "--wait=false"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

func TestReplaceDeletesTheVolumeFirst(t *testing.T) {
	w := newWorld(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "orders-b", Namespace: "default", UID: "claim"}})
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	})
	code, out, errOut := w.run("replace", "orders-b", "--with-volume", "--wait=false")
	if code != 0 || out != "persistentvolumeclaim/orders-b deleted\npod/orders-b deleted\n" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// Nobody knows how former members are if the operator is dead, and the quorum needs them.
func TestReplaceTrustsNoReportOfFormerMembers(t *testing.T) {
	w := newWorld(t)
	for _, m := range w.members {
		m.Agreed = slices.Concat(m.Agreed, []*etcdserverpb.Member{{ID: 100, Name: "old-0"}, {ID: 101, Name: "old-1"}, {ID: 102, Name: "old-2"}})
	}
	w.update(func(c *api.EtcdCluster) {
		c.Status.Import = &api.ImportStatus{}
		for i, id := range []string{"64", "65", "66"} {
			c.Status.Import.Members = append(c.Status.Import.Members, api.ImportedMember{ID: id})
			c.Status.MemberStatuses = append(c.Status.MemberStatuses, api.MemberStatus{Name: fmt.Sprint("old-", i), ID: id, Healthy: true, Version: "3.7.3"})
		}
	})
	if _, out, _ := w.run("status", "orders"); !strings.Contains(out, "DEGRADED   6 of 6 voters healthy") {
		t.Errorf("the status is\n%s", out)
	}
	code, out, errOut := w.run("replace", "orders-b", "--wait=false")
	if code != 1 || out != "" || !strings.Contains(errOut, "without it, 2 of 6 voters are healthy, and a quorum is 4") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// A policy may protect pods and not claims.
func TestAVolumeStaysWhereThePodMustNotBeDeleted(t *testing.T) {
	w := newWorld(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "orders-b", Namespace: "default", UID: "claim"}})
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	})
	w.kube.PrependReactor("delete", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "orders-b", errors.New("a policy"))
	})
	code, out, errOut := w.run("replace", "orders-b", "--with-volume", "--wait=false")
	if code != 1 || out != "" || !strings.Contains(errOut, "a policy; the command has changed nothing") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	if _, err := w.kube.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), "orders-b", metav1.GetOptions{}); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
}

func TestReplaceWithoutTheVolumeThatItShouldDelete(t *testing.T) {
	w := newWorld(t)
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Pod = &api.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{}}
	})
	code, out, errOut := w.run("replace", "orders-b", "--with-volume", "--wait=false")
	if code != 0 || out != "pod/orders-b deleted\n" {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

func TestUpgrade(t *testing.T) {
	w := newWorld(t)
	for _, m := range w.members {
		m.Status.Version = "3.5.35"
	}
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Version, c.Status.CurrentVersion, c.Status.InitialVersion = "3.5.35", "3.5.35", "3.5.35"
	})
	code, out, errOut := w.run("upgrade", "orders", "--to", "3.7.3", "--plan")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	contains(t, out, "step 1: 3.6.16, 3 members", "step 2: 3.7.3", "cannot downgrade", "Nothing prevents it")
	if v := w.object().Spec.Version; v != "3.5.35" {
		t.Errorf("the plan has changed the version to %s", v)
	}
	if code, _, errOut := w.run("upgrade", "orders", "--to", "3.7.3", "--wait=false"); code != 0 {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	if v := w.object().Spec.Version; v != "3.6.16" {
		t.Errorf("the version is %s, want that of the first step", v)
	}
}

func TestUpgradeOfAClusterThatIsIll(t *testing.T) {
	w := newWorld(t)
	w.members["orders-c"].NoQuorum = rpctypes.ErrGRPCTimeout
	w.update(func(c *api.EtcdCluster) {
		c.Spec.Version, c.Status.CurrentVersion, c.Status.InitialVersion = "3.6.16", "3.6.16", "3.6.16"
	})
	code, out, _ := w.run("upgrade", "orders", "--to", "3.7.3", "--plan")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "prevents it now: the cluster is DEGRADED")
	if code, _, errOut := w.run("upgrade", "orders", "--to", "3.7.3"); code != 1 || !strings.Contains(errOut, "has not begun") || w.object().Spec.Version != "3.6.16" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}
