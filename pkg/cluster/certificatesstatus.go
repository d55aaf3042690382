// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// heldForCertificates begins status.reason while certificates keep members from
// being made.
const heldForCertificates = "no members are made: "

// setCertificates tells of the certificates in a condition.
func setCertificates(st *api.ClusterStatus, o *observation, set func(api.ClusterConditionType, corev1.ConditionStatus, string, string)) {
	c := &o.certificates
	switch {
	case !c.used:
		clearCondition(st, api.ClusterConditionCertificatesValid)
	case len(c.problems) > 0:
		whys := make([]string, len(c.problems))
		for i, p := range c.problems {
			whys[i] = p.why
		}
		set(api.ClusterConditionCertificatesValid, corev1.ConditionFalse, c.problems[0].reason, strings.Join(whys, "; "))
	default:
		first := c.expiries[0]
		for _, e := range c.expiries {
			if e.at.Before(first.at) {
				first = e
			}
		}
		set(api.ClusterConditionCertificatesValid, corev1.ConditionTrue, "Certificates valid",
			fmt.Sprintf("they cover the members' names; the first to expire is for the use %s, at %s", first.use, date(first.at)))
	}
}

// certificatesHold says why no pods are made, for status.reason; "" if they are,
// or may be.
func certificatesHold(o *observation) string {
	if why := o.certificates.hold(o.starting()); why != "" {
		return heldForCertificates + why
	}
	return ""
}

// starting tells whether the cluster has no member yet that could have served.
func (o *observation) starting() bool {
	return o.status.Phase == api.ClusterPhaseNone || o.status.Phase == api.ClusterPhaseCreating && len(o.pods) == 0
}

// withoutSight tells of a cluster that the operator can't look into, because it
// and the members don't accept each other's certificates: whether a quorum serves
// is then not known. etcd is ready only while a quorum answers it, though, so that
// what Kubernetes sees of the pods rules out that all is well, or leaves it open.
func withoutSight(o *observation) (status corev1.ConditionStatus, reason, message string, blind bool) {
	if o.blind == "" || len(o.pods) == 0 {
		return "", "", "", false
	}
	ready := 0
	for _, p := range o.pods {
		if p.ready && !p.deleting {
			ready++
		}
	}
	voters := max(o.status.Size, 1)
	message = fmt.Sprintf("The operator can't connect to the members and changes none of them: %s; Kubernetes finds %d of %d ready", notice.Shorten(o.blind, 500), ready, voters)
	if ready < etcd.Quorum(voters) {
		return corev1.ConditionFalse, "Operator can't connect", message + ", which is no quorum" + troubles(o), true
	}
	return corev1.ConditionUnknown, "Operator can't connect", message + ", so clients are probably served", true
}

// held gives the step back unless it has to wait for certificates: a pod that
// can't start for want of them helps nobody, and one that runs must not be given
// for it. With a quorum, what comes after it is done all the same, and nil is
// given back.
func (o *observation) held(s step) step {
	why := o.certificates.hold(o.starting())
	if why == "" {
		return s
	}
	switch s.(type) {
	case addMember:
		if o.gate { // its pod is there
			return s
		}
	case chooseSeed, createPods, setVersion, recyclePod:
	default:
		return s
	}
	if o.quorum {
		return nil
	}
	return idle{heldForCertificates + why}
}
