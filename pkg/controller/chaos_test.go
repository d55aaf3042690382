// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	kubefake "k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

// rampage lets a monkey loose for an hour and returns its attempts to kill.
func rampage(t *testing.T, level int, seed uint64) (killed []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, clusters := fleetOf(t, fleettest.EtcdCluster("a", "1"))
		pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for i := range 20 {
			for _, p := range []any{member(fmt.Sprintf("a-%02d", i), "a", "1"), member(fmt.Sprintf("theirs-%02d", i), "theirs", "2")} {
				if err := pods.Add(p); err != nil {
					t.Fatal(err)
				}
			}
		}
		kube := kubefake.NewClientset()
		m := &monkey{kube: kube, pods: corelisters.NewPodLister(pods), fleet: clusters, rand: rand.New(rand.NewPCG(seed, seed)), log: quiet()}
		// Not at the time of a strike: which of the two comes first is up to the scheduler of Go.
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour-chaosInterval/2)
		defer cancel()
		m.run(ctx, clock.RealClock{}, level)
		for _, a := range kube.Actions() {
			killed = append(killed, a.(clienttesting.DeleteAction).GetName())
		}
	})
	return killed
}

func TestChaosHasLevels(t *testing.T) {
	for level, most := range map[int]int{-1: 0, 0: 0, 1: 1, 2: 5} {
		killed := rampage(t, level, 42)
		// 119 strikes in an hour, at even odds for each victim
		if low, high := 119*most/3, 119*most*2/3; len(killed) < low || len(killed) > high {
			t.Errorf("level %d killed %d pods, want %d to %d", level, len(killed), low, high)
		}
		for _, name := range killed {
			if name[:2] != "a-" {
				t.Errorf("level %d killed %s, which is not the fleet's", level, name)
			}
		}
	}
}

func TestChaosIsDeterministic(t *testing.T) {
	first, second, other := rampage(t, 2, 1), rampage(t, 2, 1), rampage(t, 2, 2)
	if !slices.Equal(first, second) {
		t.Error("the same seed killed other pods")
	}
	if slices.Equal(first, other) {
		t.Error("another seed killed the same pods")
	}
}
