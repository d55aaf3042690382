// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// tolerated is a spec that the operator does not follow as a whole, in a cluster that runs.
type tolerated struct {
	spec api.ClusterSpec // as the user wrote it
	why  string
}

// judgeSpec returns why the operator can't follow the spec; "" if it can. A cluster that runs
// does not lose its care for a spec that an earlier operator accepted: c.obj then has the spec
// that the operator follows.
func (c *Cluster) judgeSpec() string {
	errs := api.ValidateEtcdCluster(c.obj)
	if c.tolerated != nil {
		_, errs = api.Tolerated(c.obj)
	} else if len(errs) > 0 && c.hasRun() {
		given := c.obj.DeepCopy()
		given.Status = c.status
		followed, remain := api.Tolerated(given)
		if len(remain) == 0 {
			c.tolerated = &tolerated{spec: c.obj.Spec, why: errs.ToAggregate().Error()}
			c.obj = followed
		}
		errs = remain
	}
	if len(errs) > 0 {
		return errs.ToAggregate().Error()
	}
	if _, err := etcd.ParseVersion(c.obj.Spec.EffectiveVersion()); err != nil {
		return err.Error()
	}
	return ""
}

// hasRun reports whether the cluster has members, by its status.
func (c *Cluster) hasRun() bool {
	return c.status.Phase == api.ClusterPhaseRunning || c.status.Phase == api.ClusterPhaseFailed
}
