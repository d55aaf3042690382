// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Bridge is a Service of somebody else that leads to the members too, or once did.
type Bridge struct {
	Service string
	// Known is false until the operator has read the Service and its own slices.
	Known bool
	// Wanted is true if the spec names the Service, and it can lead to members.
	Wanted    bool
	Hostnames []string // of a headless Service
	Families  []corev1.IPFamily
	// NotReady is true if the Service publishes addresses that are not ready.
	NotReady bool
	// Leads is where the operator's slices lead, in order.
	Leads []manifest.BridgeEnd
	// Edited says how they differ otherwise from the operator's; "" if they do not.
	Edited string
	PutOff bool
	// Refused says why the Service does not lead where it should; "" if it does.
	Refused string
}

// keepBridge adapts the slices of a Service to the members before the next step changes them: no
// client shall be led to a member that is about to leave. It returns nil if nothing is to be done.
// While the members are not known, or the operator leaves them alone, addresses only leave: another
// pod may get one.
func (o *Observation) keepBridge(next Step) Step {
	if o.Ending && !o.Import.Held || o.tied(next) {
		return nil // Kubernetes deletes the slices of a deleted EtcdCluster, and no tie may wait
	}
	frozen := !o.Quorum || o.leftAlone()
	for _, b := range o.Bridges {
		if !b.Known || b.PutOff || frozen && !b.Wanted {
			continue
		}
		want := o.stillLed(b, "")
		if !frozen {
			want = o.bridgeEnds(b, next)
		}
		switch same := manifest.SameBridgeEnds(want, b.Leads); {
		case !same:
			return WriteBridge{Service: b.Service, To: want, First: len(b.Leads) == 0}
		case b.Edited != "" && !frozen:
			return WriteBridge{Service: b.Service, To: want, Edited: b.Edited}
		}
	}
	return nil
}

// leftAlone reports whether the operator changes nothing of the members.
func (o *Observation) leftAlone() bool {
	_, contradiction := o.Contradiction()
	return o.Spec.Paused || o.Invalid != "" || contradiction != ""
}

// tied reports whether a step ends a state in which neither side of an import has a quorum alone.
func (o *Observation) tied(next Step) bool {
	s, ok := next.(RemoveMember)
	return ok && s.Former && len(o.ownVoters()) <= len(o.FormerVoters())
}

// bridgeEnds returns where a Service shall lead: to the ready members with a vote.
func (o *Observation) bridgeEnds(b Bridge, next Step) []manifest.BridgeEnd {
	takenBack := o.Importing() && o.Ending && !o.Committed()
	if !b.Wanted || takenBack || o.Copying() || o.Fenced() {
		return nil // a copy serves clients once it accepts writes
	}
	removed := ""
	if s, ok := next.(RemoveMember); ok && !s.Former {
		removed = s.Name
	}
	if o.Status.Phase != api.ClusterPhaseRunning || o.holdsBackClients() {
		return o.stillLed(b, removed) // as with the client Service
	}
	var ends []manifest.BridgeEnd
	for _, m := range o.ownVoters() {
		p := m.Pod
		if p == nil || p.Deleting || p.Finished || m.PodName == removed || !p.Ready && !b.NotReady {
			continue
		}
		if addresses := p.AddressesOf(b.Families); len(addresses) > 0 {
			ends = append(ends, manifest.BridgeEnd{Pod: p.Name, UID: p.UID, Node: p.Node, Addresses: addresses, Ready: p.Ready})
		}
	}
	slices.SortFunc(ends, manifest.CompareBridgeEnds)
	return o.withHostnames(ends, b.Hostnames)
}

// stillLed returns where a Service leads now, without the addresses that pods no longer have. It
// adds none. A pod that is not ready keeps its place, so that it gets clients again later.
func (o *Observation) stillLed(b Bridge, removed string) []manifest.BridgeEnd {
	var ends []manifest.BridgeEnd
	for _, end := range b.Leads {
		p := o.Pod(end.Pod)
		if p == nil || p.UID != end.UID || p.Deleting || p.Finished || p.Name == removed {
			continue
		}
		end.Ready = p.Ready
		end.Addresses = slices.DeleteFunc(slices.Clone(end.Addresses), func(ip string) bool { return !slices.Contains(p.IPs, ip) })
		if len(end.Addresses) > 0 {
			ends = append(ends, end)
		}
	}
	return ends
}

// withHostnames gives the host names of former members to members, once their owners have left.
func (o *Observation) withHostnames(ends []manifest.BridgeEnd, hostnames []string) []manifest.BridgeEnd {
	members := len(ends)
	if members == 0 {
		return nil
	}
	for i, host := range hostnames {
		if slices.ContainsFunc(o.Members, func(m MemberState) bool { return m.Foreign() && isAt(m.Member, host) }) {
			continue
		}
		end := &ends[i%members]
		if end.Hostname == "" {
			end.Hostname = host
			continue
		}
		further := *end
		further.Hostname = host
		ends = append(ends, further)
	}
	slices.SortFunc(ends, manifest.CompareBridgeEnds)
	return ends
}

// isAt reports whether a member has a host name, such as old-0 for old-0.old.default.svc.
func isAt(m etcd.Member, host string) bool {
	return m.Name == host || m.Host() == host || strings.HasPrefix(m.Host(), host+".")
}

// BridgedServices are the Services that lead to members once the step has been taken.
func (o *Observation) BridgedServices(s Step) []string {
	var names []string
	for _, b := range o.Bridges {
		// A refused write may have created one of two slices. A name that came and went with each
		// attempt would cost two writes of the status.
		kept := (!b.Known || b.PutOff) && slices.Contains(o.Status.BridgedServices, b.Service)
		w, writes := s.(WriteBridge)
		begins := writes && w.Service == b.Service && len(w.To) > 0
		if len(b.Leads) > 0 || begins || kept {
			names = append(names, b.Service)
		}
	}
	return names
}

// BridgeNames are the Services that the spec bridges, and those that the status says are bridged.
func BridgeNames(spec *api.ClusterSpec, status *api.ClusterStatus) []string {
	names := slices.Clone(status.BridgedServices)
	if spec.Service != nil {
		for _, b := range spec.Service.Bridges {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
