// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// logEnds asks the containers that serve the data of survivors where the logs end. etcd itself names the last
// entry that it knows to be committed.
func (c *Cluster) logEnds(ctx context.Context, o *plan.Observation) map[string]plan.MemberLogEnd {
	served := func(p *manifest.PodState) bool { return p.DataServer.Running }
	return askPods(ctx, c, o, "has a container that does not say where the log ends", served, func(ctx context.Context, p *manifest.PodState) (plan.MemberLogEnd, error) {
		server, err := c.etcd.Conn(etcd.Endpoint{URL: o.Names.DataURL(p.Name), IP: p.IP})
		if err != nil {
			return plan.MemberLogEnd{}, err
		}
		status, err := server.Status(ctx)
		return plan.MemberLogEnd{Member: status.MemberID, End: recovery.LogEnd{Term: status.RaftTerm, Index: status.RaftIndex}}, err
	})
}
