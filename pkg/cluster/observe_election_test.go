// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// An observation during an election does not report a lost quorum. For example, the removal of
// the leader causes an election.
func TestAnElectionIsNoLostQuorumUntilItLasts(t *testing.T) {
	world := func(text string) *plan.Observation {
		o := look(t, text)
		for i := range o.Members {
			if s := o.Members[i].Status; s != nil && !o.Quorum {
				s.LeaderID = 0
			}
		}
		return o
	}
	const served, voting, lost = "cluster size=3\nmember a leader\nmember b\nmember c",
		"cluster size=3 no-quorum\nmember a\nmember b\nmember c down", "cluster size=3 no-quorum\nmember a\nmember b down\nmember c down"
	for name, c := range map[string]struct {
		before  corev1.ConditionStatus // as reported
		looks   []string
		spacing time.Duration
		want    string
	}{
		"an election that just began":          {corev1.ConditionTrue, []string{served, voting}, time.Second, "True"},
		"an election that lasts":               {corev1.ConditionTrue, []string{served, voting, voting, voting, voting}, time.Second, "False"},
		"one election after the other":         {corev1.ConditionTrue, []string{voting, voting, served, voting, voting}, time.Second, "True"},
		"a majority that went at once":         {corev1.ConditionTrue, []string{served, lost}, time.Second, "False"},
		"a majority that comes back and votes": {corev1.ConditionFalse, []string{lost, voting}, time.Second, "False"},
	} {
		t.Run(name, func(t *testing.T) {
			var since time.Time
			var st api.ClusterStatus
			for i, text := range c.looks {
				o := world(text)
				o.Now = o.Now.Add(time.Duration(i) * c.spacing)
				since = leaderless(o, since)
				o.LeaderlessSince = since
				if i == 0 {
					o.Status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Status: c.before}}
				} else {
					o.Status = st
				}
				st = statusAfter(o, plan.Plan(o), 1)
			}
			if got := conditionOf(st, api.ClusterConditionAvailable); !strings.HasPrefix(got, c.want) {
				t.Errorf("Available is %q, want %s", got, c.want)
			}
		})
	}
}
