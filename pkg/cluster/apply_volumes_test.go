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
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// A pod that the cache does not show yet may be about to use the volume.
func TestDeleteVolumeAsksForAPod(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("down")
	for name, tt := range map[string]struct {
		pod     bool
		owner   types.UID
		failure error // of the question
		want    error
	}{
		"there is none":               {},
		"there is one":                {pod: true, owner: testUID, want: errCacheBehind},
		"there is one of others":      {pod: true, owner: "other"},
		"the API server does not say": {failure: unavailable, want: unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w, c, s := volumeToDelete(t)
			if tt.pod {
				pod := memberPod(t, c.obj, s.Name)
				pod.OwnerReferences[0].UID = tt.owner
				w.makePod(pod)
			}
			w.kube.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tt.failure != nil, nil, tt.failure
			})
			if err := c.apply(t.Context(), s); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if deleted := w.count("delete", "persistentvolumeclaims") == 1; deleted != (tt.want == nil) || c.deletedVolumes[s.UID] != deleted {
				t.Errorf("the volume is deleted: %t; that is remembered: %t", deleted, c.deletedVolumes[s.UID])
			}
			if tt.want != errCacheBehind { //nolint:errorlint // the table says so
				return
			}
			if o, err := c.observe(t.Context()); err != nil || o.Pod(s.Name) == nil {
				t.Errorf("the next pass does not see the pod: %v", err)
			}
		})
	}
}

// Another volume of the name may hold the data of a member.
func TestDeleteVolumeNamesTheUID(t *testing.T) {
	w, c, s := volumeToDelete(t)
	if err := c.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for _, action := range w.kube.Actions() {
		if d, ok := action.(clienttesting.DeleteActionImpl); ok {
			if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != s.UID {
				t.Errorf("preconditions %v, want the UID %s", p, s.UID)
			}
			return
		}
	}
	t.Error("nothing is deleted")
}

// A refused deletion is put off, so that later rules have their turn.
func TestARefusedDeletionHoldsNothingBack(t *testing.T) {
	w, c, s := volumeToDelete(t)
	w.kube.PrependReactor("delete", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), s.Name, errors.New("no deletions here"))
	})
	if err := c.apply(t.Context(), s); !apierrors.IsForbidden(err) || !isNotYet(err) {
		t.Errorf("error %v", err)
	}
	if err := w.volumes.Add(manifest.BuildVolume(c.obj, s.Name)); err != nil {
		t.Fatal(err)
	}
	o, err := c.observe(t.Context())
	if err != nil || len(o.Volumes) != 1 || !o.Volumes[0].DeletePutOff || o.Volumes[0].Deleting || !strings.Contains(o.WriteUndone, "no deletions here") {
		t.Fatalf("volumes %+v, undone %q, %v", o.Volumes, o.WriteUndone, err)
	}
	c.cfg.Clock.(*clocktesting.FakeClock).Step(refusedPause)
	if o, err = c.observe(t.Context()); err != nil || o.Volumes[0].DeletePutOff || o.WriteUndone == "" {
		t.Errorf("volumes %+v, undone %q, %v", o.Volumes, o.WriteUndone, err)
	}
}

// volumeToDelete is a volume in the API server, and the step that deletes it.
func volumeToDelete(t *testing.T) (*world, *Cluster, plan.DeleteVolume) {
	t.Helper()
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	made, err := w.kube.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), manifest.BuildVolume(obj, "a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w, w.cluster(obj), plan.DeleteVolume{Name: made.Name, UID: made.UID}
}
