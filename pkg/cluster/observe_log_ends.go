// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// logEnds asks the containers that serve the data of survivors where the logs end. etcd itself names the last
// entry that it knows to be committed.
func (c *Cluster) logEnds(ctx context.Context, o *plan.Observation) map[string]plan.MemberLogEnd {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	var mu sync.Mutex
	ends := map[string]plan.MemberLogEnd{}
	for _, p := range o.Pods {
		if !p.DataServer.Running || p.Deleting || p.IP == "" {
			continue
		}
		asked.Go(func() {
			err := recovered(func() error {
				server, err := c.etcd.Conn(etcd.Endpoint{URL: o.Names.DataURL(p.Name), IP: p.IP})
				if err != nil {
					return err
				}
				status, err := server.Status(ctx)
				if err == nil {
					mu.Lock()
					ends[p.Name] = plan.MemberLogEnd{Member: status.MemberID, End: recovery.LogEnd{Term: status.RaftTerm, Index: status.RaftIndex}}
					mu.Unlock()
				}
				return err
			})
			if err != nil {
				c.log.WithError(err).Debugf("the container of pod %s does not say where its log ends", p.Name)
			}
		})
	}
	asked.Wait()
	return ends
}
