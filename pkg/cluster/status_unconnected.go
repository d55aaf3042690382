// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// misjudgedAfter is how long etcd may refuse a change for the lack of connections, while enough
// members are healthy, before the status advises a restart. It is shorter than standstillAfter, so
// that the first report has the advice.
const misjudgedAfter = 30 * time.Second

// misjudges reports whether etcd refuses a change because it sees too few members as connected,
// although enough of them are healthy. Each voter has refused it (onVoter). In an import, members
// that were there before have connections of their own.
func misjudges(o *plan.Observation, change plan.Step, err error) bool {
	if !errors.Is(err, rpctypes.ErrUnhealthy) || !o.Quorum || o.Importing() {
		return false
	}
	// As etcd's --strict-reconfig-check (server.go), which takes a new member for a voter that is down.
	voters := o.Voters()
	least := etcd.Quorum(len(voters) + 1)
	if remove, is := change.(plan.RemoveMember); is {
		voters = slices.DeleteFunc(voters, func(m plan.MemberState) bool { return m.ID == remove.ID })
		least = etcd.Quorum(len(voters))
	}
	return plan.Count(voters, plan.MemberState.Healthy) >= least
}

// reconnection says how a person ends such a refusal without a loss of data. The operator restarts
// none of two members by itself: a restart takes the quorum for some seconds.
func reconnection(o *plan.Observation) string {
	const why = "; etcd holds connected members for unconnected until one of them restarts"
	command := restart(o)
	switch {
	case command == "" && !upgrades(o):
		return why
	case command == "":
		return why + ", and no command restarts one with its data: " + byUpgrade(o)
	}
	voters := o.Voters()
	if plan.Count(voters, plan.MemberState.Healthy)-1 < etcd.Quorum(len(voters)) {
		return why + "; restart one, and writes wait some seconds: " + command
	}
	return why + "; restart one: " + command
}

// restart is the command that restarts the voter that matters least, with its data; "" if there is
// none. Each restart helps: the restarted member then sees all others, and takes the change.
func restart(o *plan.Observation) string {
	voters := slices.DeleteFunc(o.Voters(), func(m plan.MemberState) bool { return m.Pod == nil || m.Pod.Deleting || !m.Healthy() })
	leader := o.Leader()
	slices.SortFunc(voters, func(a, b plan.MemberState) int { return cmp.Compare(a.PodName, b.PodName) })
	followers := slices.DeleteFunc(slices.Clone(voters), func(m plan.MemberState) bool { return m.ID == leader })
	voters = slices.DeleteFunc(voters, func(m plan.MemberState) bool { return m.ID != leader })
	for _, members := range [][]plan.MemberState{followers, voters} {
		for _, m := range members {
			if recreatable(o, m) {
				return fmt.Sprintf("kubectl delete pod %s -n %s", m.PodName, o.Names.Namespace)
			}
		}
		for _, m := range members {
			if m.Pod.Launcher != "" {
				return fmt.Sprintf("kubectl exec %s -n %s -c etcd -- %s stop", m.PodName, o.Names.Namespace, m.Pod.Launcher)
			}
		}
	}
	return ""
}

// recreatable reports whether a member returns with its data after the deletion of its pod, and
// nothing is known that would keep it from that. A new template may be worse.
func recreatable(o *plan.Observation, m plan.MemberState) bool {
	return m.KeepsData() && m.Pod.Claimed && !m.Volume.Lost && !o.BehindTemplate(m) &&
		o.UpdateRefused == "" && podsRefusal(o).IsZero() && plan.CertificatesHold(o).IsZero()
}

// upgrades reports whether an upgrade would restart the members in place.
func upgrades(o *plan.Observation) bool {
	return !slices.ContainsFunc(o.Members, func(m plan.MemberState) bool {
		return m.Learner || m.Pod == nil || m.Pod.Legacy || !m.Healthy()
	})
}

// byUpgrade says how an edit of the spec restarts the members. The operator follows a new version
// once nothing is left to be done before: no member joins or leaves.
func byUpgrade(o *plan.Observation) string {
	var edits []string
	if slices.ContainsFunc(o.Members, o.BehindTemplate) {
		edits = append(edits, "undo the last edit of spec.pod")
	}
	if n := len(o.Members); n != o.Spec.Size {
		edits = append(edits, fmt.Sprintf("set spec.size to %d for now", n))
	}
	edits = append(edits, "set spec.version to another patch release, which the operator installs in place")
	return strings.Join(edits, ", and ")
}
