// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// gates check a step that a rule has chosen, in this order. A gate returns the step, another
// step in its place, or nil if the next rule decides.
var gates = []func(*Observation, Step) Step{
	AwaitPermission,
	awaitCertificates,
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

// CertificatesHold says for status.reason why the operator creates no pods; zero if it creates
// some, or may.
func CertificatesHold(o *Observation) Reason {
	if why := o.Certificates.Hold(o.starting()); why != "" {
		return Reason{CertificatesHeld, why}
	}
	return Reason{}
}

// awaitCertificates holds back a step that needs certificates. A pod that can't start without
// them is useless, and must not replace a running one. With a quorum, the next rules decide.
func awaitCertificates(o *Observation, s Step) Step {
	why := CertificatesHold(o)
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
