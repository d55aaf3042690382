// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The operator must not delete a working pod for one that the API server refuses.
func TestRecyclePodAsksBeforeItDeletes(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "a", errors.New(why))
	}
	for name, tt := range map[string]struct {
		answer           error // to the question whether the API server takes the new pod
		deleted, refused bool
	}{
		"it takes the pod":           {nil, true, false},
		"the quota is used up":       {forbidden("exceeded quota: pods"), true, false},
		"a webhook can't be asked":   {apierrors.NewBadRequest("admission webhook does not support dry run"), true, false},
		"a policy refuses":           {forbidden("violates PodSecurity"), false, true},
		"the spec is invalid":        {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false, true},
		"the API server is down":     {apierrors.NewServiceUnavailable("down"), false, false},
		"the request is a bad one":   {apierrors.NewBadRequest("unknown field"), false, false},
		"somebody else has the name": {apierrors.NewAlreadyExists(corev1.Resource("pods"), "a"), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
			w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
			c := w.cluster(obj)
			pod := w.makePod(memberPod(t, obj, "a"))
			w.kube.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return tt.answer != nil, nil, tt.answer
			})
			err := c.apply(t.Context(), plan.RecyclePod{Name: "a", UID: pod.UID, Version: "3.6.16", Why: "the spec has changed"})
			if failed := err != nil; failed != (!tt.deleted && !tt.refused) {
				t.Errorf("error %v", err)
			}
			if deleted := len(w.storedPods()) == 0; deleted != tt.deleted || w.Told("Member Updated") != tt.deleted {
				t.Errorf("the pod is deleted: %t; events %q", deleted, w.Events())
			}
			w.watch()
			o, err := c.observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if refused := o.UpdateRefused != ""; refused != tt.refused {
				t.Errorf("the next pass sees the refusal %q", o.UpdateRefused)
			}
		})
	}
}

// A pod that did not run at its observation may run by now. The cache was minutes behind, and
// the deletion took the quorum.
func TestAPodThatHasChangedIsNotRecycled(t *testing.T) {
	obj := clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")})
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	pod := w.makePod(memberPod(t, obj, "a"))
	s := plan.RecyclePod{Name: "a", UID: pod.UID, Seen: "1", Version: "3.6.16", Why: "it does not run"}
	if err := c.apply(t.Context(), s); !errors.Is(err, errCacheBehind) || len(w.storedPods()) != 1 || w.Told("Member Updated") {
		t.Errorf("error %v, %d pods, events %q", err, len(w.storedPods()), w.Events())
	}
	// The watch is lost: each pass tried again.
	if o, err := c.observe(t.Context()); err != nil || o.Pod("a") == nil || o.Pod("a").Seen != pod.ResourceVersion {
		t.Errorf("the next pass does not see the pod as it is: %v", err)
	}
	s.Seen = pod.ResourceVersion
	if err := c.apply(t.Context(), s); err != nil || len(w.storedPods()) != 0 {
		t.Errorf("error %v, %d pods", err, len(w.storedPods()))
	}
}

// No member can follow this edit. When etcd ended once in another pod, the operator recreated
// that pod for the edit, and its etcd never ran again.
func TestAPodWhoseEtcdHasJustEndedIsNotRecycled(t *testing.T) {
	for name, tt := range map[string]struct {
		pod      manifest.PodState
		recycled bool
	}{
		"it never ran":        {manifest.PodState{Problem: "it can't be scheduled"}, true},
		"it has just ended":   {manifest.PodState{Problem: "container etcd ended", Started: true}, false},
		"it crashes for good": {manifest.PodState{Problem: "container etcd crashes", Started: true, Crashing: true}, true},
		"it runs":             {manifest.PodState{Problem: "it is not ready", Started: true, Running: true}, false},
	} {
		o := &plan.Observation{
			Now: noon, Spec: clusterWith("3.6.16", &api.PodPolicy{PersistentVolumeClaimSpec: claimOf("1Gi")}).Spec,
			Status: api.ClusterStatus{Phase: api.ClusterPhaseRunning}, Template: manifest.Template{Pod: "new", Volume: "v"},
			Volumes: []manifest.VolumeState{{Name: "a", Template: "v"}}, PeerService: plan.OwnedObject{Owned: true},
		}
		tt.pod.Name, tt.pod.UID, tt.pod.Seen, tt.pod.Template = "a", "1", "7", manifest.Template{Pod: "old", Volume: "v"}
		o.Pods = []manifest.PodState{tt.pod}
		s, recycled := plan.Plan(o).(plan.RecyclePod)
		if recycled != tt.recycled || recycled && s.Seen != "7" {
			t.Errorf("%s: the step is %v", name, plan.Plan(o))
		}
	}
}
