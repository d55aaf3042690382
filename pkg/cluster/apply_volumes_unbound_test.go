// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// seedOnVolume is a cluster whose seed a waits for a volume of the class fast. Then the spec changes.
func seedOnVolume(t *testing.T, change func(*api.EtcdCluster)) (*world, *Cluster) {
	t.Helper()
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(w.edit(creating("a")))
	w.makeService(served(manifest.BuildPeerService(c.obj)))
	seed := seedPod("a")
	seed.Volume = true
	if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seed}}); err != nil {
		t.Fatal(err)
	}
	claim := w.storedVolume("a")
	claim.Status.Phase = corev1.ClaimPending
	w.updateVolume(claim)
	return w, w.cluster(w.edit(change))
}

// updateVolume changes a claim in the API server and in the cache.
func (w *world) updateVolume(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	if _, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Update(w.t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.showVolume(claim)
	w.watch()
}

func ofClass(class string) func(*api.EtcdCluster) {
	return func(obj *api.EtcdCluster) { obj.Spec.Pod.PersistentVolumeClaimSpec.StorageClassName = &class }
}

// A new cluster waits for its first volume forever if the StorageClass does not exist. Claims don't follow
// an edit of the class: the seed needs another one.
func TestASeedWithoutAVolumeFollowsTheClass(t *testing.T) {
	w, c := seedOnVolume(t, ofClass("slow"))
	old := w.storedVolume("a")
	deletions := 0
	for range 10 {
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := plan.Plan(o)
		if _, deletes := s.(plan.DeletePod); deletes {
			deletions++
		}
		if further, is := s.(plan.CreatePods); is && !further.Pods[0].Seed {
			break // they follow the seed
		}
		// The cache still shows the former claim.
		if err := c.apply(t.Context(), s); err != nil && !errors.Is(err, errBeingDeleted) {
			t.Fatalf("%s: %v", s, err)
		}
		w.watch()
	}
	claim, pods := w.storedVolume("a"), w.storedPods()
	if claim.UID == old.UID || ptr.Deref(claim.Spec.StorageClassName, "") != "slow" {
		t.Errorf("the claim is of class %s", ptr.Deref(claim.Spec.StorageClassName, ""))
	}
	if len(pods) != 1 || pods[0].Name != "a" || deletions != 1 {
		t.Errorf("%d pods, and %d times the seed was deleted", len(pods), deletions)
	}
	for _, action := range w.kube.Actions() {
		if d, ok := action.(clienttesting.DeleteActionImpl); ok && d.GetResource().Resource == "persistentvolumeclaims" {
			if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != old.UID || p.ResourceVersion == nil || *p.ResourceVersion != old.ResourceVersion {
				t.Errorf("preconditions %v, want the claim as it was read", p)
			}
		}
	}
}

// The operator deletes a claim only if nothing can be on it, and only as it has read it from the API server.
func TestOnlyAClaimThatNeverHadAVolumeIsDropped(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*corev1.PersistentVolumeClaim)
		spec    func(*api.EtcdCluster)
		dropped bool
	}{
		"it never had one":                         {spec: ofClass("slow"), dropped: true},
		"the cluster does without volumes":         {spec: func(obj *api.EtcdCluster) { obj.Spec.Pod = nil }, dropped: true},
		"it follows the spec":                      {spec: ofClass("fast")},
		"only the size has changed":                {spec: func(obj *api.EtcdCluster) { obj.Spec.Pod.PersistentVolumeClaimSpec = claimOf("2Gi") }},
		"it is bound by now":                       {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.Status.Phase = corev1.ClaimBound }},
		"its volume is lost, and may come back":    {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.Status.Phase = corev1.ClaimLost }},
		"it names a volume, which may hold data":   {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.Spec.VolumeName = "pv" }},
		"nobody has said yet whether it has one":   {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.Status.Phase = "" }},
		"nobody knows which template it was of":    {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.Annotations = nil }},
		"it belongs to an earlier cluster":         {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.OwnerReferences[0].UID = "other" }},
		"somebody else is just about to delete it": {spec: ofClass("slow"), change: func(v *corev1.PersistentVolumeClaim) { v.DeletionTimestamp = &metav1.Time{Time: noon} }},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := seedOnVolume(t, tt.spec)
			if tt.change != nil {
				claim := w.storedVolume("a")
				tt.change(claim)
				w.updateVolume(claim)
			}
			w.deletePod("a")
			seed := seedPod("a")
			seed.Volume = c.obj.Spec.Persistent()
			err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seed}})
			if dropped := w.count("delete", "persistentvolumeclaims") > 0; dropped != tt.dropped || errors.Is(err, errBeingDeleted) != dropped {
				t.Errorf("dropped: %t, error %v", dropped, err)
			}
		})
	}
}

func (w *world) deletePod(name string) {
	w.t.Helper()
	if err := w.kube.CoreV1().Pods("ns").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.watch()
}

// Without its claim, a pod that the cache does not show would wait forever.
func TestAClaimIsKeptForAPodThatTheCacheDoesNotShow(t *testing.T) {
	w, c := seedOnVolume(t, ofClass("slow"))
	err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a")}})
	if !errors.Is(err, errCacheBehind) || w.count("delete", "persistentvolumeclaims") > 0 {
		t.Errorf("error %v, %d deletions", err, w.count("delete", "persistentvolumeclaims"))
	}
}

// The claim has got a volume since the operator asked.
func TestAClaimIsKeptThatHasJustChanged(t *testing.T) {
	w, c := seedOnVolume(t, ofClass("slow"))
	w.deletePod("a")
	w.kube.PrependReactor("delete", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "a", errors.New("it has changed"))
	})
	if err := c.apply(t.Context(), plan.CreatePods{Pods: []manifest.MemberPod{seedPod("a")}}); !errors.Is(err, errCacheBehind) || len(c.deletedVolumes) > 0 {
		t.Errorf("error %v, deleted %v", err, c.deletedVolumes)
	}
}
