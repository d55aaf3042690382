// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// The situations in which a cluster's state and its members' words differ;
// doc/alerts.md describes their alerts.
func TestAvailableIsWhatAClientWouldSee(t *testing.T) {
	claims := func(o *plan.Observation, leader uint64) {
		for _, m := range o.Members {
			if m.Status != nil {
				m.Status.LeaderID = leader
			}
		}
	}
	raise := func(id uint64, alarm string) func(*plan.Observation) {
		return func(o *plan.Observation) { o.Members[0].Status.Alarms = []etcd.Alarm{{MemberID: id, Type: alarm}} }
	}
	unlabel := func(pods ...string) func(*plan.Observation) {
		return func(o *plan.Observation) {
			for _, name := range pods {
				p := o.Pod(name)
				p.Unlabelled, p.RelabelRefused = true, "forbidden"
			}
		}
	}
	for name, c := range map[string]struct {
		world  string
		change func(*plan.Observation)
		want   []string // the beginning, then parts of the message
	}{
		"a minority is stopped": {"cluster size=3\nmember a leader\nmember b\nmember c down stopped", nil,
			[]string{"True / Cluster available / 2 of 3 voting members are healthy"}},
		"a majority is stopped, and the survivor has not noticed": {"cluster size=3 no-quorum\nmember a\nmember b down stopped\nmember c down stopped",
			func(o *plan.Observation) { claims(o, 1) },
			[]string{"False / Quorum lost / 1 of 3 voting members answer, 2 are needed: reads and writes fail"}},
		"one of two is stopped": {"cluster size=2 no-quorum\nmember a\nmember b down stopped", nil,
			[]string{"False / Quorum lost / 1 of 2 voting members answer, 2 are needed"}},
		"an election runs": {"cluster size=3 no-quorum\nmember a\nmember b\nmember c down",
			func(o *plan.Observation) { claims(o, 3) },
			[]string{"False / Quorum lost / the members have no leader that answers"}},
		"the network of the majority is cut off from the operator, which still reads what they agree on": {"cluster size=5\nmember a leader\nmember b down\nmember c down\nmember d down\nmember e", nil,
			[]string{"True / Cluster available / a quorum serves, but only 2 of 5 voting members answer the operator; b: "}},
		"nobody answers the operator": {"cluster size=3 no-quorum\npod a running\npod b running\npod c running", nil,
			[]string{"False / Quorum lost / no member answers the operator"}},
		"learners don't count": {"cluster size=3 no-quorum\nmember a\nmember b down stopped\nmember c learner\nmember d learner", nil,
			[]string{"False / Quorum lost / 1 of 2 voting members answer, 2 are needed"}},
		"members that others have added do": {"cluster size=2 no-quorum\nmember a\nmember b down\nmember x foreign", nil,
			[]string{"False / Quorum lost / 1 of 3 voting members answer, 2 are needed"}},
		"no Service selects the only pod": {"cluster size=1\nmember a leader", unlabel("a"),
			[]string{"False / Pods unlabelled / no Service selects the pods that have lost their labels: a; Kubernetes refuses to restore them: forbidden; the operator retries every 1m0s"}},
		"a Service selects one pod of three": {"cluster size=3\nmember a leader\nmember b\nmember c", unlabel("a", "b"),
			[]string{"True / Cluster available / 3 of 3"}},
		"a Service selects only the pod of a stopped member": {"cluster size=3\nmember a leader\nmember b\nmember c down stopped", unlabel("a", "b"),
			[]string{"False / Pods unlabelled / no Service selects the pods that have lost their labels: a, b; "}},
		"a database is full": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(2, etcd.AlarmNoSpace),
			[]string{"False / Out of space / writes are refused since an alarm NOSPACE was raised by b,", "etcdctl defrag", "etcdctl alarm disarm"}},
		"data differ": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(3, etcd.AlarmCorrupt),
			[]string{"False / Data corrupt / writes are refused, and no pod is ready, since an alarm CORRUPT was raised for c, whose data differs from the others': compare", "delete the PersistentVolumeClaim, if there is one, and then the pod", "etcdctl alarm disarm"}},
		"data differ, and etcd does not know whose is right": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(0, etcd.AlarmCorrupt),
			[]string{"False / Data corrupt / writes are refused, and no pod is ready, since an alarm CORRUPT was raised for no member in particular: no majority had the same data: compare", "if a majority agrees now, delete", "restore a backup"}},
		"the member whose data differed was replaced": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(0xabc, etcd.AlarmCorrupt),
			[]string{"False / Data corrupt / writes are refused, and no pod is ready, since an alarm CORRUPT was raised for former member abc: compare the members (etcdctl endpoint hashkv --cluster --command-timeout=5m), and if all agree, lift the alarm (etcdctl alarm disarm); otherwise delete"}},
		"a member went and its alarm stayed": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(0xabc, etcd.AlarmNoSpace),
			[]string{"False / Out of space / writes are refused since an alarm NOSPACE was raised by former member abc,"}},
		"an alarm that blocks nothing": {"cluster size=3\nmember a leader\nmember b\nmember c", raise(2, "7"),
			[]string{"True / Cluster available / 3 of 3"}},
		"an alarm and no quorum": {"cluster size=3 no-quorum\nmember a\nmember b down\nmember c down", raise(1, etcd.AlarmNoSpace),
			[]string{"False / Quorum lost / "}},
		"paused": {"cluster size=3 paused no-quorum\nmember a\nmember b down\nmember c down", nil,
			[]string{"False / Quorum lost / "}},
		"with a spec that is refused": {"cluster size=3 invalid=size no-quorum\nmember a\nmember b down\nmember c down", nil,
			[]string{"False / Quorum lost / "}},
	} {
		t.Run(name, func(t *testing.T) {
			o := look(t, c.world)
			if c.change != nil {
				c.change(o)
			}
			got := conditionOf(statusAfter(o, plan.Plan(o), 1), available)
			if !strings.HasPrefix(got, c.want[0]) {
				t.Errorf("Available is\n  %q, want\n  %q", got, c.want[0])
			}
			for _, part := range c.want[1:] {
				if !strings.Contains(got, part) {
					t.Errorf("%q does not say %q", got, part)
				}
			}
		})
	}
}
