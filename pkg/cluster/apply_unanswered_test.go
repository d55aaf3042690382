// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// A change of the membership may take effect while its answer is lost. The operator reports it
// like any other, once.
func TestAChangeWhoseAnswerWasLostIsTold(t *testing.T) {
	const three = "cluster size=3\nmember a leader\nmember b\nmember c"
	without, learner := "cluster size=3\nmember a leader\nmember b", "cluster size=3\nmember a leader\nmember b\nmember c learner"
	lost := look(t, three).Members[2].ID
	for name, c := range map[string]struct {
		step          plan.Step
		before, after string
		want          []string
	}{
		"added":    {plan.AddMember{Name: "c", Learner: true}, without, learner, []string{"New Member Added"}},
		"promoted": {plan.PromoteMember{ID: lost, Name: "c"}, learner, three, []string{"Member Promoted"}},
		"removed":  {plan.RemoveMember{ID: lost, Name: "c", Dead: true}, three, without, []string{"Replacing Dead Member", "Member Removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			w := newWorld(t, clock, testCluster())
			cluster := w.cluster(testCluster())
			tellAll := func(worlds ...string) []string {
				for _, world := range worlds {
					o := look(t, world)
					o.Now = clock.Now()
					cluster.tellUnanswered(o)
				}
				return w.reasons()
			}
			try := func(refusal error) {
				t.Helper()
				cluster.etcd.Close()
				connect(t, cluster, &etcdtest.Member{Refusal: refusal})
				if err := cluster.apply(t.Context(), c.step); (err != nil) != (refusal != nil) {
					t.Fatalf("%s: %v", c.step, err)
				}
			}

			try(rpctypes.ErrGRPCTimeout)
			if got := tellAll(c.before, c.after, c.after); !slices.Equal(got, c.want) {
				t.Errorf("made without an answer: events %q, want %q", got, c.want)
			}

			try(rpctypes.ErrGRPCTimeout)
			clock.Step(unansweredFor + time.Second)
			if got := tellAll(c.before, c.after); len(got) > 0 {
				t.Errorf("not made for long, and then by somebody else: events %q", got)
			}

			try(rpctypes.ErrGRPCTimeout)
			try(nil)
			if got := tellAll(c.after); !slices.Equal(got, c.want) {
				t.Errorf("made by the next try: events %q, want %q", got, c.want)
			}
		})
	}
}

func TestWithoutAQuorumNoChangeIsTold(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	connect(t, c, &etcdtest.Member{Refusal: rpctypes.ErrGRPCTimeout})
	if err := c.apply(t.Context(), plan.RemoveMember{ID: 5, Name: "x"}); err == nil {
		t.Fatal("no error")
	}
	o := look(t, "cluster size=3 no-quorum\nmember a\nmember b down\nmember c down")
	c.tellUnanswered(o)
	if got := w.reasons(); len(got) > 0 {
		t.Errorf("what one member remembers is reported: %q", got)
	}
	c.tellUnanswered(look(t, "cluster size=3\nmember a leader\nmember b\nmember c"))
	if got := w.reasons(); len(got) != 1 {
		t.Errorf("with a quorum: %q", got)
	}
}
