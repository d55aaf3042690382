// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// mostServers is how often the operator begins to serve the database of one pod.
const mostServers = 5

// serve says what keeps a survivor that serves no clients from giving its data, and what to do about it.
// Both are zero if nothing does, or if the survivor serves clients.
func (o *Observation) serve(member string) (why string, step Step) {
	p := o.Pod(member)
	if _, notServing := o.Recovery.NotServing[member]; !notServing || p == nil {
		return "", nil
	}
	switch d := p.DataServer; {
	case d.Running:
		return "", nil
	case d.Begun > 0 && !d.Ended:
		return fmt.Sprintf("a container of the pod %s is to serve the data of its member, which serves no clients itself%s", member, reasonOf(d)), nil
	case d.Begun >= mostServers:
		return fmt.Sprintf("%d containers of the pod %s have not served the data of its member, which serves no clients itself%s: kubectl describe pod %s shows them; if you delete a pod without a volume, its data is lost", d.Begun, member, reasonOf(d), member), nil
	default:
		return fmt.Sprintf("%s serves no clients, because it has started without a quorum: a container of its pod is to serve its data%s", member, reasonOf(d)), ServeData{Pod: member, UID: p.UID, Number: d.Begun + 1}
	}
}

// reasonOf gives the reason for a container that does not run.
func reasonOf(d manifest.DataServer) string {
	if d.Problem == "" {
		return ""
	}
	return " (the last one: " + d.Problem + ")"
}
