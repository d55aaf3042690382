// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestAClustersLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		first := etcdCluster("a", "1")
		s.handler.OnAdd(first, true)
		s.expect("a 1 begins with size 3")
		edited := etcdCluster("a", "1", size(5))
		s.handler.OnUpdate(first, edited)
		s.expect("a 1 gets size 5")
		s.handler.OnDelete(edited)
		s.expect("a 1 ends")
		if n := s.fleet.size(); n != 0 {
			t.Errorf("the fleet holds %d clusters", n)
		}
	})
}

func TestADeletionThatWasMissedEndsTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a"})
		s.expect("a 1 ends")
	})
}

func TestADeletionOfWhatIsNotKnownHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.OnDelete(etcdCluster("a", "1"))
		s.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b/c"})
		s.handler.OnDelete("nonsense")
		s.handler.OnAdd("nonsense", false)
		s.handler.OnUpdate(nil, nil)
		s.expect()
	})
}

// The informer tells of a cluster that was deleted and made again, if it missed
// the deletion, as of one that was updated.
func TestAClusterMadeAgainIsAnotherCluster(t *testing.T) {
	for name, events := range map[string]func(h *clusterHandler, before, after *api.EtcdCluster){
		"seen as an update": func(h *clusterHandler, before, after *api.EtcdCluster) { h.OnUpdate(before, after) },
		"seen as it was": func(h *clusterHandler, before, after *api.EtcdCluster) {
			h.OnDelete(before)
			h.OnAdd(after, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, false)
				s.lingers["a"] = make(chan struct{})
				before, after := etcdCluster("a", "1"), etcdCluster("a", "2", size(1))
				s.handler.OnAdd(before, true)
				s.expect("a 1 begins with size 3")

				events(s.handler, before, after)
				s.handler.OnUpdate(after, etcdCluster("a", "2", size(7)))
				time.Sleep(time.Hour)
				s.expect("a 2 gets size 7") // and does not begin: the old one still winds down
				close(s.lingers["a"])
				s.expect("a 1 ends", "a 2 begins with size 1")
				if s.fleet.has("1") || !s.fleet.has("2") {
					t.Error("the fleet holds the wrong one")
				}
			})
		})
	}
}

func TestClustersMadeAndDeletedInARowNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.lingers["a"] = make(chan struct{})
		one, two, three := etcdCluster("a", "1"), etcdCluster("a", "2"), etcdCluster("a", "3")
		s.handler.OnAdd(one, true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(one)
		s.handler.OnAdd(two, false)
		s.handler.OnDelete(two)
		s.handler.OnAdd(three, false)
		close(s.lingers["a"])
		s.expect("a 1 ends", "a 2 begins with size 3", "a 2 ends", "a 3 begins with size 3")
		s.fleet.mu.Lock()
		defer s.fleet.mu.Unlock()
		if n := len(s.fleet.ended); n != 1 {
			t.Errorf("the fleet remembers %d goroutines, want the running one", n)
		}
	})
}

func TestAClusterThatHangsDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.lingers["a"] = make(chan struct{})
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(etcdCluster("a", "1"))
		s.handler.OnAdd(etcdCluster("b", "2"), false)
		s.expect("b 2 begins with size 3")
		close(s.lingers["a"])
	})
}

func TestTheScopeCanChange(t *testing.T) {
	for _, clusterWide := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, clusterWide)
			mine, theirs := etcdCluster("a", "1"), etcdCluster("a", "1", scope(ScopeClusterWide))
			if clusterWide {
				mine, theirs = theirs, mine
			}
			s.handler.OnAdd(theirs, true)
			s.expect()
			s.handler.OnUpdate(theirs, mine)
			s.expect("a 1 begins with size 3")
			s.handler.OnUpdate(mine, theirs)
			s.expect("a 1 ends")
			s.handler.OnDelete(theirs)
			s.expect()
			s.handler.OnAdd(etcdCluster("b", "2", scope("elsewhere")), false)
			s.expect()
		})
	}
}

// A foreground deletion keeps the object until its pods are gone; who made them
// again would never see it end.
func TestAClusterThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		now := metav1.Now()
		going := etcdCluster("a", "1", func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &now })
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnUpdate(nil, going)
		s.expect("a 1 ends")
		s.handler.OnUpdate(going, going)
		s.expect()
	})
}

func TestAnObjectThatNoClusterCanBeMadeOfIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.refuse["bad"] = true
		s.handler.OnAdd(etcdCluster("bad", "1"), true)
		s.handler.OnAdd(etcdCluster("good", "2"), true)
		s.expect("good 2 begins with size 3")
		if e := <-s.events.Events; !strings.Contains(e, "no such luck") {
			t.Errorf("event %q", e)
		}
		s.refuse["bad"] = false
		s.handler.OnUpdate(nil, etcdCluster("bad", "1"))
		s.expect("bad 1 begins with size 3")
	})
}

func TestAPanicHarmsNoOtherClusterAndIsStartedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.panics["a"] = 2
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.handler.OnAdd(etcdCluster("b", "2"), true)
		synctest.Wait()
		s.read() // in any order
		s.handler.OnUpdate(nil, etcdCluster("a", "1", size(5)))
		s.handler.OnUpdate(nil, etcdCluster("b", "2", size(7)))
		s.expect("a 1 gets size 5", "b 2 gets size 7")
		time.Sleep(restartDelay)
		s.expect("a 1 begins with size 5") // and panics again
		time.Sleep(restartDelay)
		s.expect("a 1 begins with size 5")
		time.Sleep(time.Hour)
		s.handler.OnUpdate(nil, etcdCluster("a", "1", size(1)))
		s.expect("a 1 gets size 1")
		s.handler.OnDelete(etcdCluster("a", "1"))
		s.expect("a 1 ends")
	})
}

func TestAClusterThatPanickedCanBeDeletedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.panics["a"] = 1
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(etcdCluster("a", "1"))
		time.Sleep(time.Hour)
		s.expect()
	})
}

func TestTheGaugeNeverDrifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		want := func(clusters, created, deleted, modified, failed float64) {
			t.Helper()
			for name, v := range map[string]float64{"": clusters, "_created": created, "_deleted": deleted, "_modified": modified, "_failed": failed} {
				if got := metric(t, s.registry, "etcd_operator_controller_clusters"+name); got != v {
					t.Errorf("etcd_operator_controller_clusters%s is %v, want %v", name, got, v)
				}
			}
		}
		s.handler.OnAdd(etcdCluster("a", "1"), true)
		s.handler.OnAdd(etcdCluster("b", "2", phase(api.ClusterPhaseFailed)), true) // failed long ago
		want(2, 2, 0, 0, 0)
		s.handler.OnUpdate(nil, etcdCluster("a", "1", phase(api.ClusterPhaseRunning))) // a status is no edit
		want(2, 2, 0, 0, 0)
		s.handler.OnUpdate(nil, etcdCluster("a", "1", size(5), phase(api.ClusterPhaseFailed)))
		want(2, 2, 0, 1, 1)
		s.handler.OnUpdate(nil, etcdCluster("a", "1", size(5), phase(api.ClusterPhaseFailed)))
		want(2, 2, 0, 1, 1)
		s.handler.OnDelete(etcdCluster("a", "1"))
		s.handler.OnDelete(etcdCluster("a", "1"))
		want(1, 2, 1, 1, 1)
		s.handler.OnDelete(etcdCluster("b", "2"))
		want(0, 2, 2, 1, 1)
	})
}
