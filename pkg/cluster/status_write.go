// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// errStatusNotWritten is an error even if the step succeeded, or needs another attempt. As long
// as the error lasts, people read an outdated status.
var errStatusNotWritten = errors.New("the status could not be written")

// writeStatus writes the status if it differs from the last written one. A deleted or recreated
// object no longer belongs to this Cluster.
func (c *Cluster) writeStatus(ctx context.Context, st api.ClusterStatus) error {
	if equality.Semantic.DeepEqual(st, c.status) {
		return nil
	}
	clusters := c.cfg.EtcdClusters.EtcdV1beta2().EtcdClusters(c.obj.Namespace)
	obj := c.obj
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next := obj.DeepCopy()
		next.Status = st
		if c.tolerated != nil {
			next.Spec = c.tolerated.spec
		}
		updated, err := clusters.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			latest, getErr := c.latest(ctx)
			if getErr != nil {
				return getErr
			}
			if !equality.Semantic.DeepEqual(latest.Status, c.status) {
				return c.adopt(latest)
			}
			obj = latest
		}
		if apierrors.IsNotFound(err) {
			// If the object exists, the definition is at fault. Otherwise the object is gone.
			if _, getErr := c.latest(ctx); getErr == nil {
				if c.cfg.StatusMissing != nil {
					c.cfg.StatusMissing()
				}
				return fmt.Errorf("%w: %s", notice.NoStatusSubresource(api.EtcdClusterResourcePlural), err.Error())
			}
		}
		if err == nil {
			// The next write starts from here; the spec waits for the informer.
			c.obj = c.obj.DeepCopy()
			c.obj.ResourceVersion = updated.ResourceVersion
			if drops := st.Record != nil && updated.Status.Record == nil; drops != c.dropsRecord {
				c.dropsRecord = drops
				if drops {
					c.log.Warn("the API server drops status.record: its CustomResourceDefinition etcdclusters is older than this operator, which remembers what it saw only while it runs")
				}
			}
			if st.RestoredFrom != nil && updated.Status.RestoredFrom == nil {
				return errors.New("the API server drops status.restoredFrom: its CustomResourceDefinition etcdclusters is older than this operator; apply the one of this release")
			}
		}
		return err
	})
	switch {
	case errors.Is(err, errSuperseded):
		return fmt.Errorf("write the status: %w", err)
	case err != nil:
		return fmt.Errorf("%w: %w", errStatusNotWritten, err)
	}
	c.notices.statusChanged(c.status, st)
	c.status = st
	return nil
}

// latest gets the object from the API server.
func (c *Cluster) latest(ctx context.Context) (*api.EtcdCluster, error) {
	latest, err := c.cfg.EtcdClusters.EtcdV1beta2().EtcdClusters(c.obj.Namespace).Get(ctx, c.obj.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if latest.UID != c.obj.UID {
		return nil, apierrors.NewNotFound(api.Resource(api.EtcdClusterResourcePlural), c.obj.Name)
	}
	return latest, nil
}

// adopt takes over a status that another instance of the operator has written. The plan from
// the older one is void: it may be a bootstrap of a cluster that holds data by now.
func (c *Cluster) adopt(latest *api.EtcdCluster) error {
	c.forgetOther(&latest.Status)
	c.status = *latest.Status.DeepCopy()
	return fmt.Errorf("somebody else has written the status: %w", errSuperseded)
}
