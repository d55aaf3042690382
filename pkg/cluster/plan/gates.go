// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// CertificatesHold says why no pods are made, for status.reason; zero if they are,
// or may be.
func CertificatesHold(o *Observation) Reason {
	if why := o.Certificates.Hold(o.starting()); why != "" {
		return Reason{CertificatesHeld, why}
	}
	return Reason{}
}

// held gives the step back unless it has to wait for certificates: a pod that
// can't start for want of them helps nobody, and one that runs must not be given
// for it. With a quorum, what comes after it is done all the same, and nil is
// given back.
func (o *Observation) awaitCertificates(s Step) Step {
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
