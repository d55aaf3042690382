// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const digestOfImage = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// rewritings are what admission makes of images.
var rewritings = map[string]func(image string) string{
	"the digest is appended":         func(image string) string { return image + digestOfImage },
	"the digest replaces the tag":    func(image string) string { return image[:strings.LastIndex(image, ":")] + digestOfImage },
	"another registry":               func(image string) string { return "mirror.example.com:5000/" + image },
	"another registry, and a digest": func(string) string { return "mirror.example.com:5000/etcd" + digestOfImage },
	"another tag":                    func(image string) string { return image + "-signed" },
}

// rewriteImages makes the API server rewrite the images of new pods.
func (w *world) rewriteImages(rewrite func(string) string) {
	w.kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		pod := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range containers {
				containers[i].Image = rewrite(containers[i].Image)
			}
		}
		return false, nil, nil
	})
}

// Kyverno and sigstore pin digests, other webhooks swap registries. The operator made
// the seed again and again.
func TestABootstrapWhereAdmissionRewritesImages(t *testing.T) {
	for name, rewrite := range rewritings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, clock.RealClock{}, testCluster())
				w.rewriteImages(rewrite)
				c := w.cluster(testCluster())
				defer run(t, c)()
				settle(w, c)
				if created, deleted := w.count("create", "pods"), w.count("delete", "pods"); created != 3 || deleted != 0 {
					t.Errorf("%d pods were created and %d deleted, want 3 and 0", created, deleted)
				}
			})
		})
	}
}

// growth and upgrades compare a pod's image and version by these notes.
func TestAPodIsKnownByTheImageThatWasAskedFor(t *testing.T) {
	for name, rewrite := range rewritings {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
			w.rewriteImages(rewrite)
			c := w.cluster(testCluster())
			made, err := c.createPod(t.Context(), manifest.MemberPod{Name: "a", Version: "3.6.16"})
			if err != nil {
				t.Fatal(err)
			}
			if p := manifest.PodStateOf(made); p.Image != "quay.io/coreos/etcd:v3.6.16" || p.Version != "3.6.16" {
				t.Errorf("of the image %s it is known that %s of version %s was asked for", made.Spec.Containers[0].Image, p.Image, p.Version)
			}
		})
	}
}

// An operator of before that has taken over for a while leaves the record of the image
// as it was.
func TestAnImageThatAnotherOperatorSetIsSeen(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	made, err := w.cluster(testCluster()).createPod(t.Context(), manifest.MemberPod{Name: "a", Version: "3.6.16"})
	if err != nil {
		t.Fatal(err)
	}
	made.Spec.Containers[0].Image, made.Annotations[manifest.VersionAnnotation] = "quay.io/coreos/etcd:v3.7.3", "3.7.3"
	if p := manifest.PodStateOf(made); p.Image != "quay.io/coreos/etcd:v3.7.3" || p.Version != "3.7.3" {
		t.Errorf("image %s, version %s", p.Image, p.Version)
	}
}

// A pod of an earlier operator does not say which image the operator asked for. A digest behind
// the tag does not make it another image: the operator must not restart etcd for that.
func TestADigestBehindTheTagIsNoOtherImage(t *testing.T) {
	pod := memberPod(t, testCluster(), "a")
	pod.Spec.Containers[0].Image += digestOfImage
	if p := manifest.PodStateOf(pod); p.Image != "quay.io/coreos/etcd:v3.6.16" || p.Version != "3.6.16" {
		t.Errorf("image %s, version %s", p.Image, p.Version)
	}
}

// Where admission makes of the new image what the pod has already, the kubelet does not
// restart etcd: the operator waited for that restart forever.
func TestAnImageThatStaysIsNoRestart(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	obj := testCluster()
	pod := memberPod(t, obj, "a")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		image    string
		restarts bool
	}{
		"it stays":   {"quay.io/coreos/etcd:v3.7.3", false},
		"it changes": {"quay.io/coreos/etcd:v3.6.16", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := pod.DeepCopy()
			pod.Name = strings.ReplaceAll(name, " ", "-")
			pod.Spec.Containers[0].Image = c.image
			made := w.makePod(pod)
			cluster := w.cluster(obj)
			err := cluster.apply(t.Context(), plan.SetVersion{Pod: made.Name, UID: made.UID, From: "3.6.16", To: "3.7.3", Admitted: c.image})
			if err != nil {
				t.Fatal(err)
			}
			w.watch()
			o, err := cluster.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if p := o.Pod(made.Name); p == nil || p.Ready == c.restarts || p.Version != "3.7.3" {
				t.Errorf("the pod is %+v", p)
			}
		})
	}
}
