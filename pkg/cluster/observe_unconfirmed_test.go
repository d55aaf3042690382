// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// The leader confirms reads with the heartbeats of a member that receives a snapshot. Writes
// fail while the disk of the third member hangs. Available stayed True.
func TestAvailableIsFalseWhileMostVotersConfirmNothing(t *testing.T) {
	const whole, one, two = "cluster size=3\nmember a leader\nmember b\nmember c",
		"cluster size=3\nmember a leader\nmember b stalled\nmember c", "cluster size=3\nmember a leader\nmember b stalled\nmember c stalled"
	const unreached = "cluster size=3\nmember a leader\nmember b stalled\nmember c down"
	idle := func(int) uint64 { return 100 }
	busy := func(i int) uint64 { return 100 + uint64(i) } // not negative
	for name, c := range map[string]struct {
		looks []string
		index func(look int) uint64
		want  string
	}{
		"a minority is stalled":                    {[]string{whole, one, one, one}, idle, "True / "},
		"a majority has just been seen stalled":    {[]string{whole, whole, two}, idle, "True / "},
		"a majority is stalled":                    {[]string{whole, two, two}, idle, "False / Quorum lost / 1 of 3 voting members confirm reads, 2 are needed: writes fail until more do; b: "},
		"a majority is stalled now and then":       {[]string{whole, two, one, two}, idle, "True / "},
		"a majority is slow, and writes come back": {[]string{whole, two, two, two, two}, busy, "True / "},
		"the operator does not reach a member":     {[]string{whole, unreached, unreached, unreached}, idle, "True / "},
		"the members confirm reads again":          {[]string{two, two, two, whole}, idle, "True / "},
	} {
		t.Run(name, func(t *testing.T) {
			var log unconfirmedLog
			var st api.ClusterStatus
			for i, text := range c.looks {
				o := look(t, text)
				o.Now = o.Now.Add(time.Duration(i) * statusTimeout)
				for j := range o.Members {
					if s := o.Members[j].Status; s != nil {
						s.RaftIndex = c.index(i)
					}
				}
				log.look(o)
				st = statusAfter(o, plan.Plan(o), 1)
			}
			if got := conditionOf(st, api.ClusterConditionAvailable); !strings.HasPrefix(got, c.want) {
				t.Errorf("Available is %q, want %s", got, c.want)
			}
		})
	}
}

func TestAnObservationShowsSinceWhenMostVotersConfirmNothing(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	c := w.cluster(testCluster())
	for i, stalled := range [][]string{{"b"}, {"b", "c"}, {"b", "c"}, {"c"}} {
		for name := range members {
			members[name].stalled = nil
			if slices.Contains(stalled, name) {
				members[name].stalled = context.DeadlineExceeded
			}
		}
		o, err := c.observe(t.Context())
		if err != nil || !o.Quorum {
			t.Fatalf("look %d: quorum %t, %v", i+1, o.Quorum, err)
		}
		if got, want := !o.UnconfirmedSince.IsZero(), len(stalled) == 2; got != want || want && !o.UnconfirmedSince.Equal(noon.Add(time.Second)) {
			t.Errorf("look %d, with %v stalled: unconfirmed since %s", i+1, stalled, o.UnconfirmedSince)
		}
		clock.Step(time.Second)
	}
}
