// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// errSourceSilent means that no member of the etcd to copy has answered in the pass.
var errSourceSilent = errors.New("the etcd to copy does not answer")

// stopWrites makes the etcd to copy refuse all writes. The status says so before.
func (c *Cluster) stopWrites(ctx context.Context, s plan.StopWrites) error {
	return c.onSource(ctx, func(ctx context.Context, m Member) error { return m.Raise(ctx, s.Fence) })
}

// resumeWrites makes it accept writes again. It touches no other alarm.
func (c *Cluster) resumeWrites(ctx context.Context, s plan.ResumeWrites) error {
	return c.onSource(ctx, func(ctx context.Context, m Member) error { return m.Disarm(ctx, s.Fence) })
}

func (c *Cluster) onSource(ctx context.Context, change func(context.Context, Member) error) error {
	if c.importer.through == nil {
		return errSourceSilent
	}
	return c.onMember(ctx, c.importer.through, changeTimeout, change)
}
