// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/etcd-operator/etcd-operator/pkg/cluster/plan"

// podsHeldBack tells why pods of members can't be made; empty if they can.
func podsHeldBack(o *plan.Observation) string {
	if o.Refused.Why == "" {
		return ""
	}
	return plan.PodsRefused + o.Refused.Why
}
