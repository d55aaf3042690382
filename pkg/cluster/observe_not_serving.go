// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

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
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	var mu sync.Mutex
	said := map[string]etcd.Status{}
	for _, p := range o.Pods {
		answers := slices.ContainsFunc(o.Members, func(m plan.MemberState) bool { return m.PodName == p.Name && m.Status != nil })
		if answers || !p.Running || p.Deleting || p.IP == "" {
			continue
		}
		asked.Go(func() {
			err := recovered(func() error {
				status, err := c.etcd.NotServing(ctx, metricsOf(&p))
				if err == nil {
					mu.Lock()
					said[p.Name] = status
					mu.Unlock()
				}
				return err
			})
			if err != nil {
				c.log.WithError(err).Debugf("pod %s does not say what it holds", p.Name)
			}
		})
	}
	asked.Wait()
	return said
}
