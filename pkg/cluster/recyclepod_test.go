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
)

// A pod that works must not be deleted for one that the API server refuses.
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
			err := c.apply(t.Context(), recyclePod{name: "a", uid: pod.UID, version: "3.6.16", why: "the spec has changed"})
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
			if refused := o.updateRefused != ""; refused != tt.refused {
				t.Errorf("the next pass sees the refusal %q", o.updateRefused)
			}
		})
	}
}
