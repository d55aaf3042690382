// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// logEndTimeout bounds the question where a log ends. A container answers after 3 s if etcd applies entries
// meanwhile (mostWait in internal/survivor).
const logEndTimeout = 5 * time.Second

// logEnds returns where the logs of survivors end, by their pods. If a container does not answer now, what it or
// an earlier one of the same pod has said still holds: without a leader, no log grows.
func (c *Cluster) logEnds(ctx context.Context, o *plan.Observation) map[string]plan.MemberLogEnd {
	said := c.askLogEnds(ctx, o)
	ends, known := map[string]plan.MemberLogEnd{}, map[types.UID]plan.MemberLogEnd{}
	for _, p := range o.Pods {
		end, ok := said[p.Name]
		if !ok {
			end, ok = c.recovery.logEnds[p.UID]
		}
		if ok {
			ends[p.Name], known[p.UID] = end, end
		}
	}
	c.recovery.logEnds = known
	return ends
}

// askLogEnds asks the containers that serve the data of survivors where the logs end. etcd itself names the last
// entry that it knows to be committed.
func (c *Cluster) askLogEnds(ctx context.Context, o *plan.Observation) map[string]plan.MemberLogEnd {
	served := func(p *manifest.PodState) bool { return p.DataServer.Running }
	return askPods(ctx, c, o, logEndTimeout, "has a container that does not say where the log ends", served, func(ctx context.Context, p *manifest.PodState) (plan.MemberLogEnd, error) {
		server, err := c.etcd.Conn(etcd.Endpoint{URL: o.Names.DataURL(p.Name), IP: p.IP})
		if err != nil {
			return plan.MemberLogEnd{}, err
		}
		status, err := server.Status(ctx)
		if err == nil && status.RaftTerm == 0 { // no term is 0: the log does not have its last entry
			err = errors.New("the term of the last entry is unknown")
		}
		return plan.MemberLogEnd{Member: status.MemberID, End: recovery.LogEnd{Term: status.RaftTerm, Index: status.RaftIndex}}, err
	})
}
