//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/fair"
)

// traffic notes when the members of many clusters are asked.
type traffic struct {
	fakeMembers
	mu    sync.Mutex
	began time.Time
	dials map[int]int              // by second
	asked map[int]int              // by second
	first map[string]time.Duration // of a namespace's members
}

type silent struct {
	Member
	t *traffic
}

func (f *traffic) Conn(ep etcd.Endpoint) (Member, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := time.Since(f.began)
	namespace := strings.Split(ep.URL, ".")[2]
	if _, known := f.first[namespace]; !known {
		f.first[namespace] = since
	}
	f.dials[int(since.Seconds())]++
	return silent{t: f}, nil
}

func (s silent) Status(context.Context) (etcd.Status, error) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	s.t.asked[int(time.Since(s.t.began).Seconds())]++
	return etcd.Status{}, errors.New("down")
}

// ThreadSanitizer has 256 slots for goroutines. With a thousand of them, which take slots from
// each other, it has ended the process ("CHECK failed: tsan_rtl.cpp:346"). So this test runs
// without it. Others have the code under the race detector.
func TestAThousandClustersAtOnceAreBoundedWorkAndStarveNobody(t *testing.T) {
	const many = 1000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{})
		f := &traffic{began: time.Now(), dials: map[int]int{}, asked: map[int]int{}, first: map[string]time.Duration{}}
		w.cfg.Members = func() Members { return f }
		w.cfg.Passes = PassLimit(clock.RealClock{}, func() int { return many + 1 })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		start := func(namespace string, i int) {
			obj := pausedCluster()
			obj.Namespace, obj.Name, obj.UID = namespace, fmt.Sprint("c", i), types.UID(fmt.Sprintf("%s-%d", namespace, i))
			pod := memberPod(t, obj, obj.Name+"-0")
			var never corev1.ContainerState
			kubelet(pod, ended(0, ""), never, runs(), never, 0)
			pod.Status.PodIP = "10.0.0.1"
			if err := errors.Join(w.clusters.Tracker().Add(obj.DeepCopy()), w.pods.Add(pod)); err != nil {
				t.Fatal(err)
			}
			c := w.cluster(obj)
			running.Go(func() { c.Run(fair.In(ctx, namespace)) })
		}
		for i := range many {
			start("many", i)
		}
		synctest.Wait()
		start("few", 0) // behind all others
		time.Sleep(Period - time.Millisecond)
		synctest.Wait()
		cancel()
		running.Wait()

		total := 0
		for second, n := range f.dials {
			total += n
			if limit := passesAtOnce + sparePasses + (many+1)/8 + 1; n > limit || f.asked[second] > limit {
				t.Errorf("%d connections and %d requests in second %d, want at most %d", n, f.asked[second], second, limit)
			}
		}
		if total < many+1 {
			t.Errorf("%d of %d clusters were asked in a period", total, many+1)
		}
		if f.first["few"] > 100*time.Millisecond {
			t.Errorf("the cluster of another namespace waited %s", f.first["few"])
		}
	})
}
