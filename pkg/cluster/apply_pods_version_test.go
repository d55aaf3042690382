// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"testing"

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

// onVolume is a cluster whose only member a runs 3.6.16 on a volume, and the step that upgrades it.
func onVolume(t *testing.T) (*world, *Cluster, plan.SetVersion) {
	t.Helper()
	policy := &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")}
	obj := clusterWith("3.7.3", policy)
	obj.Spec.Size, obj.Status = 1, runningStatus()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	pod := w.makePod(memberPod(t, clusterWith("3.6.16", policy), "a"))
	claim := manifest.BuildVolume(obj, "a")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, manifest.VersionAnnotation, "3.6.16")
	claim, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.showVolume(claim)
	w.watch()
	return w, w.cluster(obj), plan.SetVersion{Pod: "a", UID: pod.UID, From: "3.6.16", To: "3.7.3", Previous: "3.6.16", Admitted: manifest.PodStateOf(pod).Admitted, Volume: claim.UID}
}

func (w *world) showVolume(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	if err := w.volumes.Replace([]any{claim}, ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) storedVolume(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	claim, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return claim
}

// The operator dies after the change of the image, etcd changes the data, and a drain takes the
// pod. Nobody has seen the new version.
func TestAMemberThatIsDrainedInItsUpgradeComesBackAsTheNewVersion(t *testing.T) {
	w, c, s := onVolume(t)
	if err := c.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.makeService(served(manifest.BuildPeerService(c.obj)))
	w.showVolume(w.storedVolume("a"))
	w.watch()
	next := w.cluster(w.etcdCluster())
	if s, err := next.pass(t.Context()); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	pods := w.storedPods()
	if len(pods) != 1 || manifest.PodStateOf(&pods[0]).Version != "3.7.3" {
		t.Errorf("%d pods, the last step is %s", len(pods), next.lastStep)
	}
}

func TestAnUpgradeWaitsForItsNoteOnTheVolume(t *testing.T) {
	w, c, s := onVolume(t)
	w.kube.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("down")
	})
	if err := c.apply(t.Context(), s); err == nil || w.count("patch", "pods") != 0 {
		t.Errorf("error %v, %d changes of the pod", err, w.count("patch", "pods"))
	}
}

// Admission keeps the image, so the noted version never starts.
func TestANoteOnTheVolumeIsTakenBackWithTheImage(t *testing.T) {
	w, c, s := onVolume(t)
	kept := &w.storedPods()[0]
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, kept, nil })
	if err := c.apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), "admission leaves the image") {
		t.Fatalf("error %v", err)
	}
	if v := manifest.VolumeStateOf(w.storedVolume("a")).Version; v != "3.6.16" {
		t.Errorf("the volume names %s", v)
	}
}

// A policy refuses the image of a version, so etcd never runs as that version. A pod that is drained must return with
// the image that the policy allows.
func TestANoteOnTheVolumeIsTakenBackIfTheImageIsRefused(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w, c, s := onVolume(t)
	c.cfg.Clock = clock
	var refusal error
	patches := 0
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return refusal != nil, nil, refusal
	})
	noted := func() string { return manifest.VolumeStateOf(w.storedVolume("a")).Version }
	attempt := func() {
		t.Helper()
		clock.Step(specRefusedPause)
		s.Volume = ""
		if claim := w.storedVolume("a"); manifest.VolumeStateOf(claim).Version != s.To { // as the plan does
			s.Volume = claim.UID
		}
		if err := c.apply(t.Context(), s); !errors.Is(err, refusal) {
			t.Fatalf("error %v", err)
		}
	}

	refusal = apierrors.NewTimeoutError("no answer", 1)
	if attempt(); noted() != "3.7.3" {
		t.Fatalf("etcd may run as 3.7.3 already, and the volume names %s", noted())
	}
	refusal = apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("not from this registry"))
	if attempt(); noted() != "3.6.16" {
		t.Fatalf("the pod has its former image, and the volume names %s", noted())
	}
	if attempt(); noted() != "3.6.16" {
		t.Fatalf("after another refusal, the volume names %s", noted())
	}

	// Each attempt changes the volume, which starts a pass: the next one waits.
	before, written := patches, w.count("patch", "persistentvolumeclaims")
	if err := c.apply(t.Context(), s); err == nil || !strings.Contains(err.Error(), "not from this registry") || patches != before || w.count("patch", "persistentvolumeclaims") != written {
		t.Errorf("at once: error %v, %d more changes of the pod", err, patches-before)
	}

	broken := true
	w.kube.PrependReactor("patch", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		back := strings.Contains(string(a.(clienttesting.PatchAction).GetPatch()), "3.6.16")
		return broken && back, nil, errors.New("down")
	})
	if attempt(); noted() != "3.7.3" {
		t.Fatalf("the volume names %s", noted())
	}
	broken = false
	if attempt(); noted() != "3.6.16" {
		t.Errorf("the next attempt leaves %s on the volume", noted())
	}
}

// The answer to an earlier change was lost, and a policy refuses the image since. etcd may have run as that version.
func TestANoteOnTheVolumeStaysIfThePodHasTheImage(t *testing.T) {
	w, c, s := onVolume(t)
	if err := c.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New("not from this registry"))
	})
	if err := c.apply(t.Context(), s); !apierrors.IsForbidden(err) {
		t.Fatalf("error %v", err)
	}
	if v := manifest.VolumeStateOf(w.storedVolume("a")).Version; v != "3.7.3" {
		t.Errorf("the volume names %s", v)
	}
}

// The cache of pods shows the drain, and that of volumes does not show the note yet.
func TestACacheThatMissesTheVersionOnAVolumeIsNotTrusted(t *testing.T) {
	for version, want := range map[string]error{"3.6.16": nil, "3.6.17": nil, "3.7.3": errCacheBehind, "": nil} {
		w, c, s := onVolume(t)
		if err := c.setVolumeVersion(t.Context(), plan.SetVolumeVersion{Name: "a", UID: s.Volume, Version: version}); err != nil {
			t.Fatal(err)
		}
		if err := w.kube.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16", Volume: true, Rejoins: true}}})
		if !errors.Is(err, want) || (len(w.storedPods()) == 0) != (want != nil) {
			t.Errorf("the volume names %q: error %v, %d pods", version, err, len(w.storedPods()))
		}
	}
}
