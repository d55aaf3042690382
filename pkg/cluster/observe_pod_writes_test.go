// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func podAt(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

func deletedAt(name, version string) *corev1.Pod {
	pod := podAt(name, version)
	now := metav1.NewTime(noon)
	pod.DeletionTimestamp = &now
	return pod
}

func TestMergeShowsTheNewerOfCacheAndWrite(t *testing.T) {
	for name, c := range map[string]struct {
		cached     *corev1.Pod
		written    *corev1.Pod
		age        time.Duration
		shows      string // resourceVersion of the pod that is shown, "" for none
		remembered bool
		doubtful   bool
	}{
		"the cache has not seen the pod yet":     {nil, podAt("a", "10"), time.Second, "10", true, false},
		"the cache shows an earlier state":       {podAt("a", "9"), podAt("a", "10"), time.Hour, "10", true, false},
		"a version of more digits is newer":      {podAt("a", "99"), podAt("a", "100"), 0, "100", true, false},
		"the cache shows the write":              {podAt("a", "10"), podAt("a", "10"), 0, "10", false, false},
		"the cache is ahead":                     {podAt("a", "11"), podAt("a", "10"), 0, "11", false, false},
		"the pod was deleted and is gone":        {nil, deletedAt("a", "10"), 0, "", false, false},
		"the pod was deleted, the cache lags":    {podAt("a", "9"), deletedAt("a", "10"), 0, "10", true, false},
		"the cache should show it by now":        {nil, podAt("a", "10"), doubtAfter + time.Second, "10", true, true},
		"a moment before that":                   {nil, podAt("a", "10"), doubtAfter, "10", true, false},
		"versions that can't be compared: cache": {podAt("a", "x"), podAt("a", "10"), 0, "x", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := podWrites{}
			w.record(c.written, noon)
			var cached []*corev1.Pod
			if c.cached != nil {
				cached = append(cached, c.cached)
			}
			pods, doubtful := w.merge(cached, noon.Add(c.age))
			shows := ""
			if len(pods) == 1 {
				shows = pods[0].ResourceVersion
			}
			if shows != c.shows || len(pods) > 1 {
				t.Errorf("shows %q of %d pods, want %q", shows, len(pods), c.shows)
			}
			if _, remembered := w["a"]; remembered != c.remembered {
				t.Errorf("remembered: %t", remembered)
			}
			if slices.Contains(doubtful, "a") != c.doubtful {
				t.Errorf("doubtful: %v", doubtful)
			}
		})
	}
}

func TestMergeSortsAndLeavesTheCacheAlone(t *testing.T) {
	w := podWrites{}
	w.record(podAt("b", "5"), noon)
	w.record(podAt("d", "6"), noon)
	cached := []*corev1.Pod{podAt("e", "1"), podAt("a", "2"), podAt("b", "3")}
	before := slices.Clone(cached)
	pods, _ := w.merge(cached, noon)
	var got []string
	for _, p := range pods {
		got = append(got, p.Name+p.ResourceVersion)
	}
	if want := []string{"a2", "b5", "d6", "e1"}; !slices.Equal(got, want) {
		t.Errorf("pods %v, want %v", got, want)
	}
	if !slices.Equal(cached, before) {
		t.Error("the list of the cache was changed")
	}
	w.forget("d")
	if pods, _ := w.merge(nil, noon); len(pods) != 1 {
		t.Errorf("a forgotten pod is shown: %v", pods)
	}
}

// The watch of the pods is lost after a deletion. The member had no pod until the watch came back.
func TestADeletedPodThatTheCacheStillShowsIsGone(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	pod := w.makePod(memberPod(t, c.obj, "a"))
	stays := w.makePod(memberPod(t, c.obj, "b"))
	w.watch()
	if err := c.apply(t.Context(), plan.DeletePod{Name: "a", UID: pod.UID}); err != nil {
		t.Fatal(err)
	}
	c.deleted[stays.UID] = noon // it takes its time to end
	look := func() *plan.Observation {
		o := &plan.Observation{Names: manifest.NamesOf(c.obj), Now: clock.Now()}
		if err := c.observePods(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := look(); o.Pod("a") == nil || !o.Pod("a").Deleting || w.count("get", "pods") > 0 {
		t.Errorf("at first, it is seen as %+v, after %d requests", o.Pod("a"), w.count("get", "pods"))
	}
	clock.Step(doubtAfter + time.Second)
	for range 2 {
		if o := look(); o.Pod("a") != nil || o.Pod("b") == nil || !o.Pod("b").Deleting {
			t.Errorf("later, they are seen as %+v and %+v", o.Pod("a"), o.Pod("b"))
		}
	}
	again := plan.CreatePods{Pods: []manifest.MemberPod{{Name: "a", Version: "3.6.16", Rejoins: true}}}
	if err := c.apply(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if o := look(); o.Pod("a") == nil || o.Pod("a").Deleting || o.Pod("a").UID == pod.UID {
		t.Errorf("the next pod is seen as %+v", o.Pod("a"))
	}
}
