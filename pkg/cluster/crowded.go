// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"regexp"
	"strconv"
	"time"
)

// roomPatience is how long a member that is to replace another may find no node beside
// the members that are there.
const roomPatience = time.Minute

// crowdedReasons are what the scheduler says of a node that another pod keeps a pod from
// (pkg/scheduler/framework/plugins/interpodaffinity). It says so of nodes that have passed
// all other checks: their labels fit, and they have room.
var crowdedReasons = regexp.MustCompile(`(\d+) node\(s\) didn't (?:match pod|satisfy existing pods) anti-affinity rules`)

// crowdedNodes is how many nodes have another pod in the way, by the scheduler's message.
func crowdedNodes(message string) int {
	nodes := 0
	for _, match := range crowdedReasons.FindAllStringSubmatch(message, -1) {
		n, err := strconv.Atoi(match[1])
		if err == nil {
			nodes += n
		}
	}
	return nodes
}

// makeRoom removes a member that is to be replaced before the other has joined, where
// anti-affinity keeps the two from being there together. Its node must be one that the
// other could have, and the rest more than one member and a quorum.
func (o *observation) makeRoom(next memberState) step {
	planned := o.planned()
	if len(planned) != 1 || planned[0].crowded == 0 || o.now.Sub(planned[0].created) < roomPatience {
		return nil
	}
	if planned[0].crowded < o.memberNodes() || len(o.voters()) < 3 || !o.quorumWithout(next) {
		return nil
	}
	if s := o.handOver(next); s != nil {
		return s
	}
	return next.remove(false, "the member that replaces it has no node beside it")
}

// memberNodes is on how many nodes the members are.
func (o *observation) memberNodes() int {
	nodes := map[string]bool{}
	for _, m := range o.own() {
		if m.pod != nil {
			nodes[m.pod.node] = true
		}
	}
	return len(nodes)
}

// wayToRoom says what happens or can be done where a new member finds no node beside the
// others.
func (o *observation) wayToRoom(p podState) string {
	if p.crowded >= o.memberNodes() && len(o.voters()) >= 3 {
		return "a member makes room for it when all others are healthy"
	}
	return "add a node that it can run on, or let members share a node (spec.pod.antiAffinity, spec.pod.affinity)"
}
