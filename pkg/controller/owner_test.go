// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

// member makes a pod that belongs to a cluster.
func member(name, cluster string, uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: types.UID("uid of " + name), ResourceVersion: "1",
		Labels: map[string]string{api.AppLabel: api.AppEtcd, api.ClusterLabel: cluster},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(fleettest.EtcdCluster(cluster, uid), api.SchemeGroupVersion.WithKind(api.EtcdClusterResourceKind)),
		},
	}}
}

func TestWhatBelongsToAClusterWakesIt(t *testing.T) {
	orphaned := member("a-1", "a", "1")
	orphaned.OwnerReferences = nil
	elsewhere := member("a-1", "a", "1")
	elsewhere.Namespace, elsewhere.OwnerReferences = "other", nil
	owned := member("a-1", "a", "1")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "EtcdCluster", Name: "a", UID: "1", Controller: new(bool)}}
	*owned.OwnerReferences[0].Controller = true
	owned.Labels = nil
	changed := member("a-1", "a", "1")
	changed.ResourceVersion = "2"

	for name, tc := range map[string]struct {
		event func(h cache.ResourceEventHandler)
		want  []string
	}{
		"made":         {func(h cache.ResourceEventHandler) { h.OnAdd(member("a-1", "a", "1"), false) }, []string{"a 1 wakes"}},
		"changed":      {func(h cache.ResourceEventHandler) { h.OnUpdate(member("a-1", "a", "1"), changed) }, []string{"a 1 wakes"}},
		"listed again": {func(h cache.ResourceEventHandler) { h.OnUpdate(changed, changed) }, nil},
		"deleted":      {func(h cache.ResourceEventHandler) { h.OnDelete(member("a-1", "a", "1")) }, []string{"a 1 wakes"}},
		"deleted, which was missed": {
			func(h cache.ResourceEventHandler) {
				h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a-1", Obj: member("a-1", "a", "1")})
			}, []string{"a 1 wakes"},
		},
		"without an owner, by its label":        {func(h cache.ResourceEventHandler) { h.OnAdd(orphaned, false) }, []string{"a 1 wakes"}},
		"of a former cluster of that name":      {func(h cache.ResourceEventHandler) { h.OnAdd(member("a-1", "a", "0"), false) }, []string{"a 1 wakes"}},
		"of another cluster":                    {func(h cache.ResourceEventHandler) { h.OnAdd(member("b-1", "b", "7"), false) }, nil},
		"of a namesake in another namespace":    {func(h cache.ResourceEventHandler) { h.OnAdd(elsewhere, false) }, nil},
		"of a namesake kind in another group":   {func(h cache.ResourceEventHandler) { h.OnAdd(owned, false) }, nil},
		"nothing":                               {func(h cache.ResourceEventHandler) { h.OnAdd(nil, false); h.OnUpdate(nil, nil) }, nil},
		"a deletion that shows nothing but key": {func(h cache.ResourceEventHandler) { h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a-1"}) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				diary, clusters := fleetOf(t, fleettest.EtcdCluster("a", "1"))
				diary.Expect(t, "a 1 begins with size 3")
				tc.event(wakeOwner(clusters))
				diary.Expect(t, tc.want...)
			})
		})
	}
}
