// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

func ended(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
}

// kubelet gives a pod the containers' statuses, now and last.
func kubelet(pod *corev1.Pod, checkDNS, lastCheckDNS, etcd, lastEtcd corev1.ContainerState, restarts int32) {
	pod.Spec.NodeName = "node1"
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "check-dns", Image: "operator", State: checkDNS, LastTerminationState: lastCheckDNS},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "sidecar", State: runs(), RestartCount: 7}, // of a mutating webhook
		{Name: "etcd", Image: "etcd:v3.6.16", State: etcd, LastTerminationState: lastEtcd, RestartCount: restarts, Started: new(etcd.Running != nil)},
	}
}

func condition(t corev1.PodConditionType, status corev1.ConditionStatus, message string) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, Message: message}
}

func TestPodStateFromWhatTheKubeletSays(t *testing.T) {
	var never corev1.ContainerState
	passed := ended(0, "")
	initializing := waiting("PodInitializing", "")
	for name, c := range map[string]struct {
		set  func(*corev1.Pod)
		want string // words of describe
		says string // the problem, in full
	}{
		"just made": {func(*corev1.Pod) {}, "", ""},
		"no node": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse, "0/3 nodes are available: 3 Insufficient cpu.")}
		}, "", "the pod can't be scheduled: 0/3 nodes are available: 3 Insufficient cpu."},
		"on a node": {func(p *corev1.Pod) { p.Spec.NodeName = "node1" }, "scheduled", ""},
		"the operator's image can't be pulled": {func(p *corev1.Pod) {
			kubelet(p, waiting("ImagePullBackOff", "no such host"), never, initializing, never, 0)
		}, "scheduled", "container check-dns (operator) is waiting: ImagePullBackOff: no such host"},
		"check-dns runs": {func(p *corev1.Pod) {
			kubelet(p, runs(), never, initializing, never, 0)
		}, "scheduled atGate", ""},
		"check-dns failed and says why": {func(p *corev1.Pod) {
			kubelet(p, ended(1, "looking\nc-a.c.ns.svc did not resolve within 2m0s\n"), never, initializing, never, 0)
		}, "scheduled", "container check-dns ended with exit code 1: c-a.c.ns.svc did not resolve within 2m0s"},
		"check-dns failed and waits": {func(p *corev1.Pod) {
			kubelet(p, waiting("CrashLoopBackOff", "back-off 10s"), ended(1, "no DNS"), initializing, never, 0)
		}, "scheduled", "container check-dns ended with exit code 1: no DNS"},
		"check-dns tries once more": {func(p *corev1.Pod) {
			kubelet(p, runs(), ended(1, "no DNS"), initializing, never, 0)
		}, "scheduled atGate", ""},
		"etcd's container is made": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("ContainerCreating", ""), never, 0)
		}, "scheduled atGate", ""},
		"etcd's image can't be pulled": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("ErrImagePull", "not found"), never, 0)
		}, "scheduled atGate badImage", "container etcd (quay.io/coreos/etcd:v3.6.16) is waiting: ErrImagePull: not found"},
		"the launcher runs": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), never, 0)
			p.Status.ContainerStatuses[1].Started = new(false)
		}, "scheduled atGate waiting", ""},
		"etcd runs": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), never, 0)
			p.Status.Phase = corev1.PodRunning
		}, "scheduled atGate started running", ""},
		"etcd is ready": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), never, 0)
			p.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}
		}, "scheduled atGate started running ready", ""},
		"etcd is not ready": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), never, 0)
			p.Status.Conditions = []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "")}
		}, "scheduled atGate started running", ""},
		"etcd runs after check-dns had failed once": {func(p *corev1.Pod) {
			kubelet(p, passed, ended(1, "no DNS"), runs(), never, 0)
		}, "scheduled atGate started running", ""},
		"etcd runs after a crash": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), ended(2, "panic"), 1)
		}, "scheduled atGate started running", ""},
		"etcd crashed": {func(p *corev1.Pod) {
			kubelet(p, passed, never, ended(137, ""), never, 0)
		}, "scheduled atGate started", "container etcd ended with exit code 137: "},
		"etcd crashes again and again": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("CrashLoopBackOff", "back-off 5m0s"), ended(1, "disk full"), 9)
		}, "scheduled atGate started crashing", "container etcd ended with exit code 1: disk full"},
		"etcd ends well again and again": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("CrashLoopBackOff", "back-off 5m0s"), ended(0, ""), 9)
		}, "scheduled atGate started crashing", "container etcd (quay.io/coreos/etcd:v3.6.16) is waiting: CrashLoopBackOff: back-off 5m0s"},
		"the image was changed in place and restarts": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("ContainerCreating", ""), ended(0, ""), 1)
		}, "scheduled atGate started", ""},
		"the image was changed in place to an unavailable one": {func(p *corev1.Pod) {
			kubelet(p, passed, never, waiting("ImagePullBackOff", "3.6.99: not found"), ended(143, "terminated"), 0)
			p.Spec.Containers[0].Image = "quay.io/coreos/etcd:v3.6.99" // the status names the former
		}, "scheduled atGate started badImage", "container etcd (quay.io/coreos/etcd:v3.6.99) is waiting: ImagePullBackOff: 3.6.99: not found"},
		"evicted": {func(p *corev1.Pod) {
			kubelet(p, passed, never, ended(137, ""), never, 0)
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}, "scheduled atGate started finished", "the pod has failed: Evicted The node was low on resource: memory."},
		"failed without a word": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, "finished", "the pod has failed:"},
		"deleting": {func(p *corev1.Pod) {
			kubelet(p, passed, never, runs(), never, 0)
			at := metav1.NewTime(noon)
			p.DeletionTimestamp = &at
		}, "scheduled atGate started running deleting", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := memberPod(t, testCluster(), "c-a")
			c.set(pod)
			p := manifest.PodStateOf(pod)
			if got := describe(p); got != c.want {
				t.Errorf("the pod is %q, want %q", got, c.want)
			}
			if p.Problem != c.says {
				t.Errorf("its problem is %q, want %q", p.Problem, c.says)
			}
		})
	}
}

// The operator adds no member to an imported etcd whose pod does not reach all members there.
func TestThePodOfAnImportIsAtTheGateWhenItReachesTheFormerMembers(t *testing.T) {
	var never corev1.ContainerState
	initializing := waiting("PodInitializing", "")
	const failure = "gave up after 2m0s: no member answers"
	for name, c := range map[string]struct {
		checkDNS, last, etcd corev1.ContainerState
		want, says           string
	}{
		"it looks":          {runs(), never, initializing, "scheduled reaching", ""},
		"it has failed":     {ended(1, failure), never, initializing, "scheduled reaching", "container check-dns ended with exit code 1: " + failure},
		"it waits":          {waiting("CrashLoopBackOff", "back-off 10s"), ended(1, failure), initializing, "scheduled reaching", "container check-dns ended with exit code 1: " + failure},
		"it looks again":    {runs(), ended(1, failure), initializing, "scheduled reaching", "container check-dns ended with exit code 1: " + failure},
		"it reaches them":   {ended(0, ""), ended(1, failure), waiting("ContainerCreating", ""), "scheduled atGate", ""},
		"the launcher runs": {ended(0, ""), never, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, "scheduled atGate waiting", ""},
	} {
		pod, err := manifest.BuildPod(testCluster(), manifest.MemberPod{Name: "c-a", Version: "3.6.16", InitialCluster: etcd.InitialCluster{"http://old-0:2380": "old-0"}, Reach: []string{"http://old-0:2380"}}, manifest.CertForms{}, "operator")
		if err != nil {
			t.Fatal(err)
		}
		kubelet(pod, c.checkDNS, c.last, c.etcd, never, 0)
		pod.Status.ContainerStatuses[1].Started = new(false)
		p := manifest.PodStateOf(pod)
		if got := describe(p); got != c.want || p.Problem != c.says {
			t.Errorf("%s: the pod is %q with %q, want %q with %q", name, got, p.Problem, c.want, c.says)
		}
	}
}

// describe gives what is true of a pod.
func describe(p manifest.PodState) string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{
		{p.Seed, "seed"},
		{p.Scheduled, "scheduled"},
		{p.AtGate, "atGate"},
		{p.Reaching, "reaching"},
		{p.Waiting, "waiting"},
		{p.Started, "started"},
		{p.Running, "running"},
		{p.Ready, "ready"},
		{p.Deleting, "deleting"},
		{p.Finished, "finished"},
		{p.BadImage, "badImage"},
		{p.Crashing, "crashing"},
	} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

func TestPodStateReadsTheRest(t *testing.T) {
	pod := memberPod(t, testCluster(), "c-a")
	kubelet(pod, ended(0, ""), corev1.ContainerState{}, runs(), corev1.ContainerState{}, 3)
	deleted := metav1.NewTime(noon)
	pod.UID, pod.Status.PodIP, pod.CreationTimestamp = "u", "10.1.2.3", metav1.NewTime(noon.Add(-time.Hour))
	pod.DeletionTimestamp = &deleted
	p := manifest.PodStateOf(pod)
	got := fmt.Sprint(p.Name, " ", p.UID, " ", p.IP, " ", p.Node, " ", p.Image, " ", p.Version, " ", p.Restarts)
	if want := "c-a u 10.1.2.3 node1 quay.io/coreos/etcd:v3.6.16 3.6.16 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !p.Created.Equal(noon.Add(-time.Hour)) || !p.DeleteBy.Equal(noon.Add(manifest.DeleteMargin)) {
		t.Errorf("created %v, to be gone by %v", p.Created, p.DeleteBy)
	}
}

func TestPodStateOfAPodThatLacksEverything(t *testing.T) {
	if got := describe(manifest.PodStateOf(&corev1.Pod{})); got != "" {
		t.Errorf("it is %q", got)
	}
}

func TestVersionOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/coreos/etcd:v3.6.16":             "3.6.16",
		"registry:5000/etcd:3.5.35":               "3.5.35",
		"registry:5000/etcd:v3.7.0-rc.1":          "3.7.0-rc.1",
		"registry:5000/etcd":                      "3.4.3", // as annotated
		"etcd:latest":                             "3.4.3",
		"registry/etcd@sha256:0123456789abcdef01": "3.4.3",
		"": "3.4.3",
	} {
		if got := manifest.VersionOf(image, "v3.4.3"); got != want {
			t.Errorf("%q runs %q, want %q", image, got, want)
		}
	}
}

// These are the last words of init containers of this and former releases, if data is missing.
func TestMissingDataIsKnownByTheLastWords(t *testing.T) {
	for words, want := range map[string]bool{
		"member 1 has served from this pod before, and /var/etcd/data holds no data of it now: it must not start":        true,
		"the volume holds no data of etcd in /var/etcd/data: this member comes back and must not start without its data": true,
		"etcd was started in this pod before, and /var/etcd/data holds no data of it now: this member must not start":    true,
		"the other members know that this member has started before, and it holds no data now: it could lose writes":     true,
		"gave up after 2m0s: a.c.ns.svc does not resolve":                                                                false,
	} {
		pod := &corev1.Pod{}
		kubelet(pod, waiting("CrashLoopBackOff", ""), ended(1, words), waiting("PodInitializing", ""), corev1.ContainerState{}, 0)
		if got := manifest.PodStateOf(pod).Dataless; got != want {
			t.Errorf("%s: %t", words, got)
		}
	}
}
