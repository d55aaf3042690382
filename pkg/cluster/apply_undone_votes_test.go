// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// The operator counts the members that it takes out because somebody else has promoted them, for an hour.
func TestUndoneVotesCountForAnHour(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	c := w.cluster(testCluster())
	undone := func() int {
		t.Helper()
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o.VotesUndone
	}
	undone()
	for _, voteUndone := range []bool{false, true} {
		if err := c.apply(t.Context(), plan.RemoveMember{ID: 3, Name: "c", VoteUndone: voteUndone}); err != nil {
			t.Fatal(err)
		}
	}
	if n := undone(); n != 1 {
		t.Errorf("%d votes were undone, want 1", n)
	}
	clock.Step(time.Hour)
	if n := undone(); n != 0 {
		t.Errorf("an hour later, %d votes were undone", n)
	}
}
