// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

const (

	// maxNewMembers is how many members one step creates at most. The next creates more.
	maxNewMembers = 16
)

// observe reads pods and Services from the informers' caches, and the membership and health
// from etcd.
func (c *Cluster) observe(ctx context.Context) (*plan.Observation, error) {
	invalid := c.judgeSpec()
	o := &plan.Observation{
		Now:       c.cfg.Clock.Now(),
		Names:     manifest.NamesOf(c.obj),
		Created:   c.obj.CreationTimestamp.Time,
		Spec:      *c.obj.Spec.DeepCopy(),
		Status:    *c.status.DeepCopy(),
		NewNames:  newMembers(c.obj),
		Ending:    c.obj.DeletionTimestamp != nil,
		Gate:      manifest.BusyboxImage(&c.obj.Spec) == "",
		LogTarget: c.logTarget,
		LogCount:  c.logCount,
		Invalid:   invalid,
	}
	if c.tolerated != nil {
		o.Tolerated = c.tolerated.why
	}
	c.postponed.forget(o.Now)
	o.StatedLiteralTags = c.obj.Annotations[api.LiteralTagsAnnotation] == "true"
	o.Record, o.Accepted = o.Status.Record, c.obj.Annotations[plan.AcceptAnnotation]
	o.StatedOrigin = c.obj.Annotations[plan.InitialVersionAnnotation]
	if c.memory != nil {
		o.Record = c.memory
	}
	if o.Spec.Version == "" && o.Status.CurrentVersion != "" {
		// A newer operator with a newer default must not upgrade etcd by itself.
		o.Spec.Version = o.Status.CurrentVersion
	}
	if source, err := api.SeedBackupOf(c.obj); err != nil {
		o.SourceUnreadable = err.Error()
	} else {
		o.Source = source
	}
	if stillRefused(c.refused, c.obj.Generation, o.Now) {
		o.Refused = c.refused
	}
	var err error
	if err = c.observeOwnedObjects(o); err != nil {
		return nil, err
	}
	if err := c.observeCertificates(ctx, o); err != nil {
		return nil, err
	}
	if err := c.observeUser(ctx, o); err != nil {
		return nil, err
	}
	if err := c.observeImport(ctx, o); err != nil {
		return nil, err
	}
	c.observeCopy(ctx, o)
	c.observeBridges(ctx, o)
	if !o.Certificates.UnknownCAs() {
		if o.Template, err = c.template(); err != nil {
			return nil, err
		}
		o.UpdateRefused = c.postponed.lastRefusal(updateOf(o.Template), o.Now)
		o.UpdatePutOff = c.postponed.holds(updateOf(o.Template), o.Now)
	}
	if err := c.observePods(ctx, o); err != nil {
		return nil, err
	}
	if err := c.findVanished(ctx, o); err != nil {
		return nil, err
	}
	if err := c.observeVolumes(ctx, o); err != nil {
		return nil, err
	}
	c.votesUndone = slices.DeleteFunc(c.votesUndone, func(at time.Time) bool { return o.Now.Sub(at) >= time.Hour })
	o.VotesUndone = len(c.votesUndone)
	o.JoinSingly = c.postponed.holds(severalPods, o.Now)
	o.LiftPutOff = c.postponed.holds(liftingOfAlarms, o.Now)
	c.observeMembers(ctx, o)
	c.observeRecovery(ctx, o)
	if err := c.findUnlabelled(ctx, o); err != nil {
		return nil, err
	}
	return o, nil
}

// newMembers chooses names for members and their pods: as many as one step can need.
func newMembers(obj *api.EtcdCluster) []string {
	made := make([]string, max(1, min(obj.Spec.Size, maxNewMembers)))
	for i := range made {
		made[i] = obj.Name + "-" + rand.String(10)
	}
	return made
}
