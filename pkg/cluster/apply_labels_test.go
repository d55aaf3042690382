// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The cache hides a pod without its labels. The operator wanted to remove its member, learned
// from the API server that the pod exists, and repeated that every second.
func TestAPodThatLostItsLabelsGetsThemBack(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	pod := memberPod(t, c.obj, "a")
	want := pod.Labels
	pod.Labels = map[string]string{"note": "of the user"}
	made := w.makePod(pod)
	for range 10 {
		err := c.apply(t.Context(), plan.RemoveMember{ID: 1, Name: "a", Why: plan.Reason{Kind: plan.PodGone}})
		if !errors.Is(err, errCacheBehind) {
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range want {
		if now.Labels[key] != value {
			t.Errorf("the labels are %v, want %v", now.Labels, want)
		}
	}
	if now.Labels["note"] == "" || w.count("patch", "pods") != 1 || !w.Told("Pod a was edited") {
		t.Errorf("labels %v, %d patches, events %q", now.Labels, w.count("patch", "pods"), w.Events())
	}
	w.watch()
	if o, err := c.observe(t.Context()); err != nil || o.Pod("a") == nil || o.Pod("a").UID != made.UID {
		t.Errorf("it is not seen: %v", err)
	}
}

// A pod that is being deleted on a dead node stays for long. If it has lost its labels, the
// operator tried to create a pod of its name, fifty times a second.
func TestAPodThatIsBeingDeletedGetsItsLabelsBackWhereItIsInTheWay(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	pod := memberPod(t, c.obj, "a")
	pod.Labels, pod.Finalizers, pod.DeletionTimestamp = nil, []string{"somebody/s"}, &metav1.Time{Time: noon}
	made := w.makePod(pod)
	err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16", Rejoins: true}}})
	if !errors.Is(err, errCacheBehind) {
		t.Errorf("the error is %v", err)
	}
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p := o.Pod("a"); p == nil || p.UID != made.UID || !p.Deleting {
		t.Errorf("the pod is seen as %+v", p)
	}
}

// A deleted pod on a dead node lacked its labels, and a quota refused to give them back. The operator
// tried to create the pod of that name thirty times a minute, as if the cache were about to show it.
func TestAPodInTheWayWithoutItsLabelsIsNotAskedForAtOnceAgain(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	pod := memberPod(t, c.obj, "a")
	pod.Labels, pod.Finalizers, pod.DeletionTimestamp = nil, []string{"somebody/s"}, &metav1.Time{Time: noon}
	w.makePod(pod)
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("exceeded quota"))
	})
	for range 2 {
		err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16", Rejoins: true}}})
		if err == nil || isNotYet(err) || !strings.Contains(err.Error(), "exceeded quota") {
			t.Errorf("the error is %v", err)
		}
	}
	if n := w.count("patch", "pods"); n != 1 {
		t.Errorf("%d writes of labels", n)
	}
}

// The cache hides the only member's pod without its labels, and no other member can report it.
// The operator said that all members and their data were gone.
func TestTheOnlyPodThatLostItsLabelsIsNotTakenForLost(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Spec.Size = 1
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Status.Record = &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}}}
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	pod := memberPod(t, c.obj, "a")
	pod.Labels = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.EtcdContainer, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	w.makePod(pod)
	for range 5 {
		if _, err := c.pass(t.Context()); err != nil && !errors.Is(err, errCacheBehind) {
			t.Fatal(err)
		}
		w.watch()
		clock.Step(time.Second)
	}
	now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Labels[api.ClusterLabel] != "c" {
		t.Errorf("labels %v", now.Labels)
	}
	if st := w.etcdCluster().Status; st.Phase != api.ClusterPhaseRunning {
		t.Errorf("phase %s: %s", st.Phase, st.Reason)
	}
}

// Admission refuses to give the only pod its labels back. The operator reported an available
// cluster, whose Services select no pod.
func TestAPodWhoseLabelsStayLostIsReported(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Spec.Size = 1
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Status.Record = &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}}}
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	pod := memberPod(t, c.obj, "a")
	pod.Labels = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifest.EtcdContainer, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	w.makePod(pod)
	refuses := true
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("not today"))
	})
	passes := func(d time.Duration) {
		t.Helper()
		for range int(d / time.Second) {
			if _, err := c.pass(t.Context()); err != nil && !errors.Is(err, errCacheBehind) {
				t.Fatal(err)
			}
			w.watch()
			clock.Step(time.Second)
		}
	}
	passes(3 * time.Minute)
	st := w.etcdCluster().Status
	for _, want := range []string{"have lost their labels: a;", "not today"} {
		if !strings.Contains(st.Reason, want) {
			t.Errorf("the reason is %q, want %q in it", st.Reason, want)
		}
	}
	if c := st.Condition(api.ClusterConditionStalled); c.Status != corev1.ConditionTrue || c.Reason != "PodsUnlabelled" {
		t.Errorf("the condition is %+v", c)
	}
	if n := w.count("patch", "pods"); n != 3 || !w.Told("Kubernetes refuses to give pod a its labels back; the operator retries every 1m0s") {
		t.Errorf("%d patches, events %q", n, w.Events())
	}
	refuses = false
	passes(2 * time.Minute)
	if st := w.etcdCluster().Status; strings.Contains(st.Reason, "labels") {
		t.Errorf("with its labels, the reason is %q", st.Reason)
	}
}

// One member has lost its pod and another its labels. With both counted as lost there was
// no quorum without them: the operator replaced neither and looked for neither.
func TestAPodThatLostItsLabelsIsFoundWhereAQuorumServes(t *testing.T) {
	obj := testCluster()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	pod := memberPod(t, c.obj, "a")
	pod.Labels = nil
	w.makePod(pod)
	o := &plan.Observation{Now: noon, Quorum: true, Record: &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}, {ID: "b", Name: "b"}}}}
	if err := c.findUnlabelled(t.Context(), o); !errors.Is(err, errCacheBehind) {
		t.Errorf("the pass continues without the pod: %v", err)
	}
	now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || now.Labels[api.ClusterLabel] != "c" {
		t.Errorf("labels %v, %v", now.Labels, err)
	}
}

// The operator looks for a missing pod once a minute, and no more.
func TestPodsThatAreGoneAreNotLookedForAllTheTime(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	obj := testCluster()
	obj.Status.Phase = api.ClusterPhaseRunning
	obj.Status.Record = &api.ClusterRecord{ClusterID: "1", Members: []api.RecordedMember{{ID: "a", Name: "a"}}}
	w := newWorld(t, clock, obj)
	c := w.cluster(obj)
	for range 60 {
		if _, err := c.pass(t.Context()); err != nil && !errors.Is(err, errCacheBehind) {
			t.Fatal(err)
		}
		w.watch()
		clock.Step(time.Second)
	}
	if n := w.count("get", "pods"); n < 1 || n > 2 {
		t.Errorf("%d looks in a minute", n)
	}
	if st := w.etcdCluster().Status; st.Phase != api.ClusterPhaseFailed {
		t.Errorf("phase %s", st.Phase)
	}
}

// If somebody removes the labels each time, the operator does not cause a storm of writes.
func TestLabelsAreNotFoughtOver(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	pod := memberPod(t, c.obj, "a")
	pod.Labels = nil
	made := w.makePod(pod)
	for range 60 {
		if err := c.relabel(t.Context(), made); err != nil { // as if they were gone again
			t.Fatal(err)
		}
		clock.Step(time.Second)
	}
	if n := w.count("patch", "pods"); n > 2 {
		t.Errorf("%d patches in a minute", n)
	}
}

func TestPodsOfOthersAreNotLabelled(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	pod := memberPod(t, c.obj, "a")
	pod.Labels, pod.OwnerReferences = nil, nil
	if err := c.relabel(t.Context(), w.makePod(pod)); err != nil || w.count("patch", "pods") > 0 {
		t.Errorf("%v, %d patches", err, w.count("patch", "pods"))
	}
}

// A copy of a member's pod with its labels counted as a third healthy pod of three: a drain could evict two
// voters. Clients reached it through the client Service, and no status said so.
func TestReadyPodsOfOthersWithTheLabelsAreNamed(t *testing.T) {
	obj := testCluster()
	obj.Status.Phase = api.ClusterPhaseRunning
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	for _, name := range []string{"debug-1", "debug-2", "debug-3", "debug-4"} {
		pod := memberPod(t, c.obj, name)
		pod.OwnerReferences = nil
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.makePod(pod)
	}
	starting := memberPod(t, c.obj, "starting")
	starting.OwnerReferences = nil
	w.makePod(starting)
	w.watch()
	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.MinAvailable() < 4 {
		t.Errorf("evictions leave %d pods, of which 4 may be no members", o.MinAvailable())
	}
	s := plan.Idle{Why: plan.Reason{Kind: plan.AsSpecified}}
	st := statusAfter(o, s, 1)
	for _, want := range []string{"the client Service can lead to", "debug-1, debug-2, debug-3 and 1 more;", "remove their label etcd_cluster"} {
		if !strings.Contains(st.Reason, want) {
			t.Errorf("the reason is %q, want %q in it", st.Reason, want)
		}
	}
	if c := st.Condition(api.ClusterConditionStalled); c.Status != corev1.ConditionTrue || c.Reason != "StrangePods" {
		t.Errorf("the condition is %+v", c)
	}
}

// While somebody else's Service has the peer Service's name, the operator tries once a minute
// to create its own.
func TestATakenPeerServiceIsTriedOnceAMinute(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	w.makeService(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}})
	c := w.cluster(testCluster())
	before := w.count("create", "services")
	for range 180 {
		_, err := c.pass(t.Context())
		_ = err // that it is taken
		clock.Step(time.Second)
	}
	if tries := w.count("create", "services") - before; tries < 2 || tries > 4 {
		t.Errorf("%d tries in three minutes", tries)
	}
	if reason := w.etcdCluster().Status.Reason; reason == "" {
		t.Error("the status does not say so")
	}
	if err := w.kube.CoreV1().Services("ns").Delete(t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.Step(takenPause)
	if _, err := c.pass(t.Context()); err != nil || !metav1.IsControlledBy(w.service("c"), c.obj) {
		t.Errorf("it is not made when its name is free: %v", err)
	}
}

// A pod for the next member lost its labels before it joined. The operator did not look for it:
// it stayed, and another took its place.
func TestAPodThatVanishedFromTheCacheGetsItsLabelsBack(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	pod := w.makePod(memberPod(t, c.obj, "a"))
	w.makePod(memberPod(t, c.obj, "b"))
	w.watch()
	if _, err := c.observe(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(pod.Labels, api.ClusterLabel)
	pod.ResourceVersion = w.nextVersion()
	if _, err := w.kube.CoreV1().Pods("ns").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watch()
	if err := w.pods.Replace(nil, ""); err != nil { // as its selector has it
		t.Fatal(err)
	}
	if _, err := c.observe(t.Context()); !errors.Is(err, errCacheBehind) {
		t.Errorf("the pass continues without the pod: %v", err)
	}
	now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || now.Labels[api.ClusterLabel] != "c" {
		t.Errorf("labels %v, %v", now.Labels, err)
	}
	w.watch()
	asked := w.count("get", "pods")
	if o, err := c.observe(t.Context()); err != nil || o.Pod("a") == nil || w.count("get", "pods") != asked {
		t.Errorf("the next look sees %v and asks %d times more: %v", o, w.count("get", "pods")-asked, err)
	}
}

// A pod for the next member lost a label while no operator ran. The next operator did not know of
// the pod, which stayed on its node forever.
func TestAPodThatLostItsLabelBeforeTheOperatorBeganGetsItBack(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	lost := memberPod(t, testCluster(), "a")
	delete(lost.Labels, api.ClusterLabel)
	other := testCluster()
	other.Name, other.UID = "other", "other"
	w.makePod(lost)
	others := memberPod(t, other, "b")
	delete(others.Labels, api.ClusterLabel)
	w.makePod(others)
	w.watch()
	c := w.cluster(testCluster())
	if _, err := c.observe(t.Context()); !errors.Is(err, errCacheBehind) {
		t.Errorf("the pass continues without the pod: %v", err)
	}
	for name, want := range map[string]string{"a": "c", "b": ""} {
		now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || now.Labels[api.ClusterLabel] != want {
			t.Errorf("pod %s: labels %v, %v", name, now.Labels, err)
		}
	}
	w.watch()
	if o, err := c.observe(t.Context()); err != nil || o.Pod("a") == nil || o.Pod("b") != nil {
		t.Errorf("the next look sees %v: %v", o, err)
	}
}

// The pod of a removed member lost its labels. The operator tried to delete the volume, the API
// server showed the pod, and that repeated forever.
func TestAPodInTheWayOfADeletedVolumeGetsItsLabelsBack(t *testing.T) {
	w, c, s := volumeToDelete(t)
	pod := memberPod(t, c.obj, s.Name)
	pod.Labels = nil
	w.makePod(pod)
	if err := c.apply(t.Context(), s); !errors.Is(err, errCacheBehind) {
		t.Errorf("error %v", err)
	}
	if now, err := w.kube.CoreV1().Pods("ns").Get(t.Context(), s.Name, metav1.GetOptions{}); err != nil || now.Labels[api.ClusterLabel] != "c" {
		t.Errorf("labels %v, %v", now.Labels, err)
	}
}
