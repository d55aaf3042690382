// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
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
		return fmt.Sprintf("%s serves no clients, because it has started without a quorum: a container of its pod is to serve its data%s", member, reasonOf(d)), serveNext(p)
	}
}

// serveNext has the data of a pod's member served, unless a container for that is on its way.
func serveNext(p *manifest.PodState) Step {
	if d := p.DataServer; d.Begun > 0 && !d.Ended {
		return nil
	}
	return ServeData{Pod: p.Name, UID: p.UID, Number: p.DataServer.Begun + 1}
}

// logWait is how long a choice waits for a container that also serves the log of a survivor.
const logWait = 2 * time.Minute

// serveLog does the same before the data of a survivor is stored, for one that serves clients too: its own snapshot
// lacks the entries of its log that it has not applied. It gives up when a container has not served them for
// logWait, because the cluster must not depend on it. Old releases of Kubernetes know no such container.
func (o *Observation) serveLog(member string, c *api.RecoveryChoice) (why string, step Step) {
	p := o.Pod(member)
	if _, notServing := o.Recovery.NotServing[member]; notServing || p == nil {
		return o.serve(member)
	}
	begun, err := time.Parse(time.RFC3339, c.StartDate)
	d := p.DataServer
	if err != nil || d.Running || d.Begun >= mostServers || o.Now.Sub(begun) >= logWait {
		return "", nil
	}
	why = fmt.Sprintf("a container of the pod %s is to serve the data of its member, with the entries of its log that it has not applied%s; at %s, etcd's own snapshot without them has to do",
		member, reasonOf(d), begun.Add(logWait).UTC().Format(time.RFC3339))
	return why, serveNext(p)
}

// serveLogs has the logs of all fit survivors served, if there are several, and waits until their ends are known.
// For the others than the chosen one, it gives up after logWait.
func (o *Observation) serveLogs(chosen string, c *api.RecoveryChoice) (why string, step Step) {
	why, step = o.serveLog(chosen, c)
	begun, err := time.Parse(time.RFC3339, c.StartDate)
	if step != nil || err != nil || o.Now.Sub(begun) >= logWait {
		return why, step
	}
	fit := slices.DeleteFunc(o.Left().Survivors, func(s recovery.Survivor) bool { return s.Unfit != "" })
	if len(fit) < 2 {
		return why, nil
	}
	until := begun.Add(logWait).UTC().Format(time.RFC3339)
	for _, s := range fit {
		p := o.Pod(s.Name)
		if s.LogEnd != nil || p == nil {
			continue
		}
		d := p.DataServer
		if !d.Running && d.Begun >= mostServers {
			continue
		}
		if step := serveNext(p); step != nil && !d.Running && s.Name != chosen {
			why = fmt.Sprintf("a container of the pod %s is to serve its log, because several members are left and the ends of their logs count%s; at %s, what they have applied has to do", s.Name, reasonOf(d), until)
			return why, step
		}
		why = cmp.Or(why, fmt.Sprintf("the end of the log of %s is not known yet%s; at %s, what the members that are left have applied has to do", s.Name, reasonOf(d), until))
	}
	return why, nil
}

// reasonOf gives the reason for a container that does not run.
func reasonOf(d manifest.DataServer) string {
	if d.Problem == "" {
		return ""
	}
	return " (the last one: " + d.Problem + ")"
}
