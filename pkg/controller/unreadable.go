// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reasonTimeout bounds the writing of one reason.
const reasonTimeout = 10 * time.Second

// writeReason tells in the status of an EtcdCluster that can't be read why that
// is so: an event is gone after an hour. What fails is left at that, and in the log.
func (c *Controller) writeReason(ctx context.Context, obj *unreadable, reason string) {
	ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
	defer cancel()
	if err := c.tryWriteReason(ctx, obj, reason); err != nil && ctx.Err() == nil {
		c.log.WithField("cluster", keyOf(obj)).WithError(err).Warn("write status.reason of an EtcdCluster that can't be read")
	}
}

func (c *Controller) tryWriteReason(ctx context.Context, obj *unreadable, reason string) error {
	client := c.cfg.Dynamic.Resource(etcdClusters).Namespace(obj.Namespace)
	live, err := client.Get(ctx, obj.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if live.GetUID() != obj.UID || live.GetResourceVersion() != obj.ResourceVersion {
		return nil // it is another one by now, and will be seen
	}
	if err := unstructured.SetNestedField(live.Object, reason, "status", "reason"); err != nil {
		return fmt.Errorf("its status: %w", err)
	}
	_, err = client.UpdateStatus(ctx, live, metav1.UpdateOptions{})
	return err
}
