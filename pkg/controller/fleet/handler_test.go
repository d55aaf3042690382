// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func TestAClustersLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		first := fleettest.EtcdCluster("a", "1")
		s.handler.OnAdd(first, true)
		s.expect("a 1 begins with size 3")
		edited := fleettest.EtcdCluster("a", "1", fleettest.Size(5))
		s.handler.OnUpdate(first, edited)
		s.expect("a 1 gets size 5")
		s.handler.OnDelete(edited)
		s.expect("a 1 ends")
		if n := s.fleet.Size(); n != 0 {
			t.Errorf("the fleet holds %d clusters", n)
		}
	})
}

func TestADeletionThatWasMissedEndsTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/a"})
		s.expect("a 1 ends")
	})
}

func TestADeletionOfWhatIsNotKnownHarmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		s.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/b/c"})
		s.handler.OnDelete("nonsense")
		s.handler.OnAdd("nonsense", false)
		s.handler.OnUpdate(nil, nil)
		s.expect()
	})
}

// The informer reports a cluster that was deleted and recreated, if it missed
// the deletion, as of one that was updated.
func TestAClusterMadeAgainIsAnotherCluster(t *testing.T) {
	for name, events := range map[string]func(h *handler[*api.EtcdCluster], before, after *api.EtcdCluster){
		"seen as an update": func(h *handler[*api.EtcdCluster], before, after *api.EtcdCluster) { h.OnUpdate(before, after) },
		"seen as it was": func(h *handler[*api.EtcdCluster], before, after *api.EtcdCluster) {
			h.OnDelete(before)
			h.OnAdd(after, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, false)
				s.Lingers["a"] = make(chan struct{})
				before, after := fleettest.EtcdCluster("a", "1"), fleettest.EtcdCluster("a", "2", fleettest.Size(1))
				s.handler.OnAdd(before, true)
				s.expect("a 1 begins with size 3")

				events(s.handler, before, after)
				s.handler.OnUpdate(after, fleettest.EtcdCluster("a", "2", fleettest.Size(7)))
				time.Sleep(time.Hour)
				s.expect("a 2 gets size 7") // and does not begin: the old one still winds down
				close(s.Lingers["a"])
				s.expect("a 1 ends", "a 2 begins with size 1")
				if s.fleet.Has("1") || !s.fleet.Has("2") {
					t.Error("the fleet holds the wrong one")
				}
			})
		})
	}
}

func TestClustersMadeAndDeletedInARowNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.Lingers["a"] = make(chan struct{})
		one, two, three := fleettest.EtcdCluster("a", "1"), fleettest.EtcdCluster("a", "2"), fleettest.EtcdCluster("a", "3")
		s.handler.OnAdd(one, true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(one)
		s.handler.OnAdd(two, false)
		s.handler.OnDelete(two)
		s.handler.OnAdd(three, false)
		close(s.Lingers["a"])
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
		s.Lingers["a"] = make(chan struct{})
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		s.handler.OnAdd(fleettest.EtcdCluster("b", "2"), false)
		s.expect("b 2 begins with size 3")
		close(s.Lingers["a"])
	})
}

func TestTheScopeCanChange(t *testing.T) {
	for _, clusterWide := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, clusterWide)
			mine, theirs := fleettest.EtcdCluster("a", "1"), fleettest.EtcdCluster("a", "1", fleettest.Scope(api.ScopeClusterWide))
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
			s.handler.OnAdd(fleettest.EtcdCluster("b", "2", fleettest.Scope("elsewhere")), false)
			s.expect()
		})
	}
}

// Nobody managed a cluster with a mistyped annotation, and only the logs of the operators said so.
func TestAScopeThatKeepsAllOperatorsAwayIsReported(t *testing.T) {
	for _, clusterWide := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, clusterWide)
			reported := func() (n int) {
				for len(s.events.Events) > 0 {
					if e := <-s.events.Events; !strings.Contains(e, "Warning Cluster Not Managed No operator manages this cluster") || !strings.Contains(e, "\"cluster-wide\"") {
						t.Errorf("event %q", e)
					}
					n++
				}
				return n
			}
			mine, typo := fleettest.EtcdCluster("a", "1"), fleettest.EtcdCluster("a", "1", fleettest.Scope("cluster-wide"))
			if clusterWide {
				mine = fleettest.EtcdCluster("a", "1", fleettest.Scope(api.ScopeClusterWide))
			}
			s.handler.OnAdd(mine, true)
			s.handler.OnUpdate(mine, typo)
			s.handler.OnUpdate(typo, typo) // the informer lists again
			if n := reported(); n != 1 {
				t.Errorf("%d events", n)
			}
			s.handler.OnUpdate(typo, mine)
			s.handler.OnUpdate(mine, typo)
			if n := reported(); n != 1 {
				t.Errorf("%d events after it was back", n)
			}
		})
	}
}

// A foreground deletion keeps the object until its pods are gone; who made them
// again would never see it end.
func TestAClusterThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		now := metav1.Now()
		going := fleettest.EtcdCluster("a", "1", func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &now })
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
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
		s.Refuse["bad"] = true
		s.handler.OnAdd(fleettest.EtcdCluster("bad", "1"), true)
		s.handler.OnAdd(fleettest.EtcdCluster("good", "2"), true)
		s.expect("good 2 begins with size 3")
		if e := <-s.events.Events; !strings.Contains(e, "no such luck") {
			t.Errorf("event %q", e)
		}
		s.Refuse["bad"] = false
		s.handler.OnUpdate(nil, fleettest.EtcdCluster("bad", "1"))
		s.expect("bad 1 begins with size 3")
	})
}

func TestAPanicHarmsNoOtherClusterAndIsStartedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.Panics["a"] = 2
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
		s.handler.OnAdd(fleettest.EtcdCluster("b", "2"), true)
		synctest.Wait()
		s.Read() // in any order
		s.handler.OnUpdate(nil, fleettest.EtcdCluster("a", "1", fleettest.Size(5)))
		s.handler.OnUpdate(nil, fleettest.EtcdCluster("b", "2", fleettest.Size(7)))
		s.expect("a 1 gets size 5", "b 2 gets size 7")
		time.Sleep(restartDelay)
		s.expect("a 1 begins with size 5") // and panics again
		time.Sleep(restartDelay)
		s.expect("a 1 begins with size 5")
		time.Sleep(time.Hour)
		s.handler.OnUpdate(nil, fleettest.EtcdCluster("a", "1", fleettest.Size(1)))
		s.expect("a 1 gets size 1")
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		s.expect("a 1 ends")
	})
}

func TestAClusterThatPanickedCanBeDeletedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.Panics["a"] = 1
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		time.Sleep(time.Hour)
		s.expect()
	})
}

// A controller with finalizers takes them off an object under deletion itself.
func TestAnObjectUnderDeletionStaysWithTheRunnerThatFinalizesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.source.Finalizer = "ours"
		now := metav1.Now()
		going := fleettest.EtcdCluster("a", "1", func(obj *api.EtcdCluster) { obj.DeletionTimestamp = &now })
		s.handler.OnAdd(going, true)
		s.expect("a 1 begins with size 3")
		s.handler.OnUpdate(going, going)
		s.expect("a 1 gets size 3")
		s.handler.OnDelete(going)
		s.expect("a 1 ends")
	})
}

// Only some clusters have a finalizer: the others end at once.
func TestAnObjectUnderDeletionStaysWhileItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.source.Finalizer, s.handler.source.SomeHeld = "ours", true
		now := metav1.Now()
		going := func(finalizers ...string) *api.EtcdCluster {
			return fleettest.EtcdCluster("a", "1", func(obj *api.EtcdCluster) { obj.DeletionTimestamp, obj.Finalizers = &now, finalizers })
		}
		s.handler.OnAdd(going("another", "ours"), true)
		s.expect("a 1 begins with size 3")
		s.handler.OnUpdate(nil, going("another"))
		s.expect("a 1 ends")
	})
}

func TestWhatComesChangesAndGoesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, false)
		s.handler.OnAdd(fleettest.EtcdCluster("a", "1"), true)
		s.handler.OnAdd(fleettest.EtcdCluster("b", "2"), true)
		s.expectCounted(2, map[string]int{"created": 2})
		s.handler.OnUpdate(nil, fleettest.EtcdCluster("a", "1", fleettest.Size(5)))
		s.expectCounted(2, map[string]int{"created": 2, "updated from 3 to 5": 1})
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		s.handler.OnDelete(fleettest.EtcdCluster("a", "1"))
		s.expectCounted(1, map[string]int{"created": 2, "updated from 3 to 5": 1, "deleted": 1})
	})
}
