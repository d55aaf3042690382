// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// counted counts the requests to members, by the name of the call.
type counted struct {
	*fakeMember
	mu    *sync.Mutex
	calls map[string]int
	local []etcd.Member // is what the member remembers
	// hangs makes the member answer nothing, as a stopped process does.
	hangs *bool
}

func (c counted) count(ctx context.Context, call string) error {
	c.mu.Lock()
	c.calls[call]++
	hangs := *c.hangs
	c.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (c counted) Status(ctx context.Context) (etcd.Status, error) {
	if err := c.count(ctx, "status"); err != nil {
		return etcd.Status{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fakeMember.Status(ctx)
}

func (c counted) Commits(ctx context.Context) (etcd.Position, error) {
	if err := c.count(ctx, "read"); err != nil {
		return etcd.Position{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fakeMember.Commits(ctx)
}

func (c counted) Members(ctx context.Context) ([]etcd.Member, error) {
	if err := c.count(ctx, "members"); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fakeMember.Members(ctx)
}

func (c counted) LocalMembers(ctx context.Context) ([]etcd.Member, error) {
	return c.local, c.count(ctx, "local members")
}

// countedMembers are fakeMembers of which each request counts.
type countedMembers struct {
	fakeMembers
	mu    sync.Mutex
	calls map[string]int
	local []etcd.Member
	hangs map[string]*bool
}

func (f *countedMembers) Conn(ep etcd.Endpoint) (Member, error) {
	m, err := f.fakeMembers.Conn(ep)
	if err != nil {
		return nil, err
	}
	name := strings.Split(strings.TrimPrefix(ep.URL, "http://"), ".")[0]
	return counted{m.(*fakeMember), &f.mu, f.calls, f.local, f.hangs[name]}, nil //nolint:forcetypeassert // they all are
}

// take returns the calls since the last one.
func (f *countedMembers) take() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := maps.Clone(f.calls)
	clear(f.calls)
	return calls
}

// resting runs a cluster of three members until it rests.
func resting(t *testing.T) (*world, *Cluster, *countedMembers) {
	t.Helper()
	w := newWorld(t, clock.RealClock{}, testCluster())
	f := &countedMembers{fakeMembers: fakeMembers{}, calls: map[string]int{}, hangs: map[string]*bool{}}
	f.join(t, w, "a", "b", "c")
	f.local = f.fakeMembers["a"].agreed
	for i, name := range []string{"a", "b", "c"} {
		f.fakeMembers[name].position = etcd.Position{ClusterID: 8, MemberID: uint64(i + 1), Term: 2, Revision: 33} // small
		f.hangs[name] = new(bool)
	}
	w.cfg.Members = func() Members { return f }
	c := w.cluster(testCluster())
	stop := run(t, c)
	t.Cleanup(stop)
	settle(w, c)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	f.take()
	return w, c, f
}

func TestAnIdleMinuteCostsFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, f := resting(t)
		requests, passes := len(w.kube.Actions())+len(w.clusters.Actions()), w.passes.Load()
		time.Sleep(time.Minute)
		synctest.Wait()
		// Two passes, and six looks.
		if n := w.passes.Load() - passes; n != 2 {
			t.Errorf("%d passes", n)
		}
		if got, want := f.take(), (map[string]int{"status": 2 * 3, "members": 2, "read": (2 + 6) * 3}); !maps.Equal(got, want) {
			t.Errorf("requests to the members %v, want %v", got, want)
		}
		if n := len(w.kube.Actions()) + len(w.clusters.Actions()) - requests; n != 0 {
			t.Errorf("%d requests to the API server", n)
		}
	})
}

func TestALookThatFindsAnyDifferenceIsFollowedByAPass(t *testing.T) {
	for name, change := range map[string]func(*countedMembers){
		"a write":           func(f *countedMembers) { f.fakeMembers["b"].position.Revision++ },
		"an election":       func(f *countedMembers) { f.fakeMembers["b"].position.Term++ },
		"another member":    func(f *countedMembers) { f.fakeMembers["b"].position.MemberID = 9 },
		"another cluster":   func(f *countedMembers) { f.fakeMembers["a"].position.ClusterID = 9 },
		"a lost quorum":     func(f *countedMembers) { f.fakeMembers["c"].stalled = errors.New("no leader") },
		"a stopped process": func(f *countedMembers) { *f.hangs["c"] = true },
		"a refused read": func(f *countedMembers) {
			f.fakeMembers["a"].position = etcd.Position{Refusal: rpctypes.ErrUserEmpty}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, _, f := resting(t)
				for { // until just after a pass, so that looks are next
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
					if f.take()["status"] > 0 {
						break
					}
				}
				f.mu.Lock()
				change(f)
				f.mu.Unlock()
				time.Sleep(Period)
				synctest.Wait()
				if got := f.take(); got["status"] < 3 {
					t.Errorf("requests %v: no pass within a period", got)
				}
			})
		})
	}
}

func TestTheStatusIsTrueWithinTenSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		stop      []string
		available corev1.ConditionStatus
		healthy   int
	}{
		"a stopped process": {[]string{"b"}, corev1.ConditionTrue, 2},
		"a lost quorum":     {[]string{"b", "a"}, corev1.ConditionFalse, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, f := resting(t)
				f.mu.Lock()
				for _, name := range tc.stop {
					*f.hangs[name] = true
				}
				if len(tc.stop) > 1 {
					for _, m := range f.fakeMembers {
						m.stalled, m.agreed, m.says[0].LeaderID = errors.New("no leader"), nil, 0
					}
				}
				f.mu.Unlock()
				time.Sleep(10*time.Second + time.Second) // the passes' own time-outs
				synctest.Wait()
				st := w.etcdCluster().Status
				healthy := 0
				for _, m := range st.MemberStatuses {
					if m.Healthy {
						healthy++
					}
				}
				if got := st.Condition(available).Status; got != tc.available || healthy != tc.healthy {
					t.Errorf("Available is %s with %d healthy members, want %s and %d", got, healthy, tc.available, tc.healthy)
				}
			})
		})
	}
}

func TestAWakeEndsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c, _ := resting(t)
		passes := w.passes.Load()
		c.Wake()
		synctest.Wait()
		if w.passes.Load() == passes {
			t.Error("no pass follows a change of a pod")
		}
	})
}

func TestAClusterWithWritesGetsAPassEachPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, f := resting(t)
		passes := w.passes.Load()
		for range 60 {
			f.mu.Lock()
			for _, m := range f.fakeMembers {
				m.position.Revision++
			}
			f.mu.Unlock()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := w.passes.Load() - passes; n < 7 {
			t.Errorf("%d passes in a minute", n)
		}
	})
}

func TestLooksOfManyClustersAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{})
		waits := map[time.Duration]int{}
		for i := range 1000 {
			obj := testCluster()
			obj.UID = types.UID(fmt.Sprintf("11111111-1111-1111-1111-%012d", i))
			c := w.cluster(obj)
			wait := c.untilLook()
			if wait <= 0 || wait > Period-lookTimeout {
				t.Fatalf("waits for %s", wait)
			}
			waits[wait]++
		}
		// One wake of the process serves those of half a second, which are a fifteenth.
		if len(waits) != 15 {
			t.Errorf("%d different waits", len(waits))
		}
		for wait, n := range waits {
			if n < 30 || n > 120 {
				t.Errorf("%d of 1000 looks after %s", n, wait)
			}
		}
	})
}

func TestALookAllocatesLittle(t *testing.T) {
	c := idleCluster(t, 0)
	for _, m := range c.etcd.(fakeMembers) { //nolint:forcetypeassert // they are those of idleCluster
		m.position = etcd.Position{MemberID: 1}
	}
	for range 2 {
		if _, err := c.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.rest.seen) != 3 || !c.rest.settled {
		t.Fatalf("the passes heard %v", c.rest.seen)
	}
	if n := testing.AllocsPerRun(20, func() { c.look(t.Context()) }); n > 30 {
		t.Errorf("a look allocates %.0f times", n)
	}
}
