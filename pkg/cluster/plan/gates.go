// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// gates hold back a step that a rule has chosen, in this order. A gate returns the step,
// or nil where the next rule decides, or another step in its place.
var gates = []func(*Observation, Step) Step{
	AwaitPermission,
	awaitCertificates,
}

// through returns what the gates make of a step; nil if the next rule decides.
func through(o *Observation, s Step) Step {
	for _, gate := range gates {
		if s == nil {
			return nil
		}
		s = gate(o, s)
	}
	return s
}

// CertificatesHold says why no pods are made, for status.reason; zero if they are,
// or may be.
func CertificatesHold(o *Observation) Reason {
	if why := o.Certificates.Hold(o.starting()); why != "" {
		return Reason{CertificatesHeld, why}
	}
	return Reason{}
}

// awaitCertificates holds back a step that needs certificates: a pod that can't start
// for want of them helps nobody, and must not take the place of one that runs. With a
// quorum the next rules decide.
func awaitCertificates(o *Observation, s Step) Step {
	why := CertificatesHold(o)
	if why.IsZero() {
		return s
	}
	switch s.(type) {
	case AddMember:
		if o.Gate { // its pod is there
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

// AwaitPermission holds back pods that the API server would refuse once more. What
// else there is to do goes on, if that needs no pod to begin with.
func AwaitPermission(o *Observation, s Step) Step {
	if _, makes := s.(CreatePods); !makes || !o.Now.Before(o.Refused.Until) {
		return s
	}
	if o.Quorum {
		return nil
	}
	return Idle{Reason{PodsRefused, o.Refused.Why}}
}
