// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// metricsOf is the address where the member in a pod serves its metrics.
func metricsOf(p *manifest.PodState) string {
	return net.JoinHostPort(p.IP, strconv.Itoa(manifest.MetricsPort))
}

// notServing asks the members that run and do not answer what they hold. After a start without a quorum,
// etcd serves no clients (embed.serve waits for the first agreement), and its metrics are all it says.
func (c *Cluster) notServing(ctx context.Context, o *plan.Observation) map[string]etcd.Status {
	silent := func(p *manifest.PodState) bool {
		return p.Running && !slices.ContainsFunc(o.Members, func(m plan.MemberState) bool { return m.PodName == p.Name && m.Status != nil })
	}
	return askPods(ctx, c, o, statusTimeout, "does not say what it holds", silent, func(ctx context.Context, p *manifest.PodState) (etcd.Status, error) {
		return c.etcd.NotServing(ctx, metricsOf(p))
	})
}
