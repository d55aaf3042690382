// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Admission that keeps the image of a pod is not an image with a wrong tag: the operator says
// so, and tries again every minute.
func TestAnImageThatAdmissionKeepsIsTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	made := w.makePod(memberPod(t, testCluster(), "a"))
	kept, patches := true, 0
	w.kube.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		patch := a.(clienttesting.PatchAction)
		var what corev1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &what); err != nil || !kept || len(what.Spec.Containers) == 0 {
			return false, nil, err
		}
		live, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", patch.GetName())
		if err != nil {
			return true, nil, err
		}
		pod := live.(*corev1.Pod).DeepCopy()
		for key, value := range what.Annotations {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
		return true, pod, w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns")
	})
	w.watch()
	c := w.cluster(testCluster())
	before := manifest.PodStateOf(made)
	s := plan.SetVersion{Pod: "a", UID: made.UID, From: before.Version, To: "3.7.3", Previous: before.Version, Admitted: before.Admitted}
	for range 2 {
		if err := c.apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), "admission leaves the image of pod a at "+before.Admitted) {
			t.Fatalf("error %v", err)
		}
		clock.Step(20 * time.Second)
	}
	if pod := &w.storedPods()[0]; manifest.PodStateOf(pod).Version != before.Version || manifest.PodStateOf(pod).Image != before.Image || pod.Annotations[manifest.PreviousVersionAnnotation] != made.Annotations[manifest.PreviousVersionAnnotation] {
		t.Errorf("the pod states %v, before it was %v", pod.Annotations, made.Annotations)
	}
	if patches != 2 {
		t.Errorf("%d patches within 20 seconds, want 2", patches)
	}
	kept = false
	clock.Step(time.Minute)
	if err := c.apply(t.Context(), s); err != nil {
		t.Errorf("admission lets go: %v", err)
	}
	if p := manifest.PodStateOf(&w.storedPods()[0]); p.Version != "3.7.3" || !strings.HasSuffix(p.Admitted, "v3.7.3") {
		t.Errorf("the pod is %+v", p)
	}
}

// Admission may keep the image of a pod and name it by its digest at the same time. The image has
// then changed, and its version has not.
func TestAnImageThatAdmissionKeepsAndPinsIsTriedAgain(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	made := w.makePod(memberPod(t, testCluster(), "a"))
	before := manifest.PodStateOf(made)
	pinned := before.Admitted + "@sha256:" + strings.Repeat("ab", 32)
	w.kube.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		var what corev1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &what); err != nil || len(what.Spec.Containers) == 0 {
			return false, nil, err
		}
		live, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("pods"), "ns", patch.GetName())
		if err != nil {
			return true, nil, err
		}
		pod := live.(*corev1.Pod).DeepCopy()
		for key, value := range what.Annotations {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
		}
		pod.Spec.Containers[0].Image = pinned
		return true, pod, w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, "ns")
	})
	w.watch()
	c := w.cluster(testCluster())
	s := plan.SetVersion{Pod: "a", UID: made.UID, From: before.Version, To: "3.7.3", Previous: before.Version, Admitted: before.Admitted}
	if err := c.apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), "admission leaves the image of pod a at "+before.Admitted) {
		t.Fatalf("error %v", err)
	}
	if p := manifest.PodStateOf(&w.storedPods()[0]); p.Version != before.Version || p.Image != before.Image || p.Admitted != pinned {
		t.Errorf("the pod is %+v, before it was %+v", p, before)
	}
}

func TestSameImage(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"example.com:5000/etcd:v3.6.15", "example.com:5000/etcd:v3.6.15", true},
		{"example.com:5000/etcd:v3.6.15", "example.com:5000/etcd:v3.6.15@sha256:aa", true},
		{"example.com:5000/etcd:v3.6.15@sha256:aa", "example.com:5000/etcd:v3.6.16@sha256:bb", false},
		{"example.com:5000/etcd@sha256:aa", "example.com:5000/etcd@sha256:bb", false},
		{"etcd@sha256:aa", "etcd@sha256:aa", true},
	} {
		if same := sameImage(c.a, c.b); same != c.same {
			t.Errorf("%s and %s: same is %t", c.a, c.b, same)
		}
	}
}
