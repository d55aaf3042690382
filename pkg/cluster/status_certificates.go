// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// setCertificates sets the condition about the certificates.
func setCertificates(st *api.ClusterStatus, o *plan.Observation, set func(api.ClusterConditionType, corev1.ConditionStatus, string, string)) {
	c := &o.Certificates
	switch {
	case !c.Used:
		clearCondition(st, api.ClusterConditionCertificatesValid)
	case len(c.Problems) > 0:
		whys := make([]string, len(c.Problems))
		for i, p := range c.Problems {
			whys[i] = p.Why
		}
		set(api.ClusterConditionCertificatesValid, corev1.ConditionFalse, c.Problems[0].Reason, strings.Join(whys, "; "))
	default:
		first := c.Expiries[0]
		for _, e := range c.Expiries {
			if e.At.Before(first.At) {
				first = e
			}
		}
		set(api.ClusterConditionCertificatesValid, corev1.ConditionTrue, "Certificates valid",
			fmt.Sprintf("they cover the members' names; the first to expire is for the use %s, at %s", first.Use, certcheck.Date(first.At)))
	}
}

// withoutSight returns the availability of a cluster that the operator can't query, because it
// and the members do not accept each other's certificates. Nobody knows then whether a quorum
// serves. But etcd is ready only while a quorum answers it, so the pods' readiness either
// rules out that all is well, or leaves it open.
func withoutSight(o *plan.Observation) (status corev1.ConditionStatus, reason, message string, blind bool) {
	if o.Blind == "" || len(o.Pods) == 0 {
		return "", "", "", false
	}
	ready := 0
	for _, p := range o.Pods {
		if p.Ready && !p.Deleting {
			ready++
		}
	}
	voters := max(o.Status.Size, 1)
	message = fmt.Sprintf("The operator can't connect to the members and changes none of them: %s; Kubernetes finds %d of %d ready", notice.Shorten(o.Blind, 500), ready, voters)
	if ready < etcd.Quorum(voters) {
		return corev1.ConditionFalse, "Operator can't connect", message + ", which is no quorum" + troubles(o), true
	}
	return corev1.ConditionUnknown, "Operator can't connect", message + ", so clients are probably served", true
}
