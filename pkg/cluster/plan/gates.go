// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// gates check a step that a rule has chosen, in this order. A gate returns the step, another
// step in its place, or nil if the next rule decides.
var gates = []func(*Observation, Step) Step{
	AwaitPermission,
	awaitCertificates,
	awaitPeers,
}

// through returns the gates' result for a step; nil if the next rule decides.
func through(o *Observation, s Step) Step {
	for _, gate := range gates {
		if s == nil {
			return nil
		}
		s = gate(o, s)
	}
	return s
}

// CertificatesHold says for status.reason why the operator creates no pods, or adds no members; zero if
// it creates some, or may.
func CertificatesHold(o *Observation) Reason {
	if why := podsHold(o); !why.IsZero() {
		return why
	}
	if len(o.Pods) > 0 && o.Certificates.MembersHeld != "" && !o.MayRestartRefusing() {
		return Reason{MembersHeld, o.Certificates.MembersHeld}
	}
	return Reason{}
}

func podsHold(o *Observation) Reason {
	if why := o.Certificates.Hold(o.starting()); why != "" {
		return Reason{CertificatesHeld, why}
	}
	return Reason{}
}

// PeersRefuse reports whether members refuse the certificate that all show to each other. A member that
// restarts then has no connection to the others. One that is silent may only have lost its connections. A
// single member has none.
func (o *Observation) PeersRefuse() bool {
	return o.Certificates.MembersHeld != "" && len(o.Members) != 1
}

// awaitPeers holds back new members while they would refuse the others, or the others them. The pods of
// members that return to their volumes are no new ones: if all return at once, they agree again.
func awaitPeers(o *Observation, s Step) Step {
	if o.Certificates.MembersHeld == "" {
		return s
	}
	switch s := s.(type) {
	case AddMember:
	case CreatePods:
		if !slices.ContainsFunc(s.Pods, func(p manifest.MemberPod) bool { return !p.Rejoins && !p.Seed }) {
			return s
		}
	default:
		return s
	}
	if o.Quorum {
		return nil
	}
	return Idle{Reason{MembersHeld, o.Certificates.MembersHeld}}
}

// awaitCertificates holds back a step that needs certificates. A pod that can't start without
// them is useless, and must not replace a running one. With a quorum, the next rules decide.
func awaitCertificates(o *Observation, s Step) Step {
	why := podsHold(o)
	if why.IsZero() {
		return s
	}
	switch s.(type) {
	case AddMember:
		if o.Gate { // its pod exists
			return s
		}
	case ChooseSeed, CreatePods, SetVersion, RecyclePod:
	default:
		return s
	}
	if o.Quorum {
		return nil
	}
	return Idle{why}
}

// AwaitPermission holds back pods that the API server would refuse again. Other work
// continues, if it needs no new pod first.
func AwaitPermission(o *Observation, s Step) Step {
	if _, makes := s.(CreatePods); !makes || !o.Now.Before(o.Refused.Until) {
		return s
	}
	if o.Quorum {
		return nil
	}
	return Idle{Reason{PodsRefused, o.Refused.Why}}
}
