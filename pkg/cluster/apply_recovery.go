// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// storeSurvivor creates the EtcdBackup of the survivor. Its name follows from the recorded time,
// so an operator that crashed meanwhile creates no second one.
func (c *Cluster) storeSurvivor(ctx context.Context, s plan.StoreSurvivor) error {
	defer c.recovery.again()
	begun, err := time.Parse(time.RFC3339, s.Begun)
	if err != nil {
		return fmt.Errorf("read status.recovery.choice.startDate: %w", err)
	}
	client := c.cfg.EtcdClusters.EtcdV1beta2().EtcdBackups(c.obj.Namespace)
	like, err := client.Get(ctx, s.Like, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read EtcdBackup %s: %w", s.Like, granted(err, "get etcdbackups"))
	}
	once, err := recovery.SurvivorBackup(like, s.Member, begun)
	if err != nil {
		return err
	}
	if _, err = client.Create(ctx, once, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create EtcdBackup %s: %w", once.Name, granted(err, "create etcdbackups"))
	}
	return nil
}

// restoreChosen creates the EtcdRestore that replaces the cluster.
func (c *Cluster) restoreChosen(ctx context.Context, s plan.RestoreChosen) error {
	defer c.recovery.again()
	client := c.cfg.EtcdClusters.EtcdV1beta2()
	from, err := client.EtcdBackups(c.obj.Namespace).Get(ctx, s.From, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read EtcdBackup %s: %w", s.From, granted(err, "get etcdbackups"))
	}
	restore, err := recovery.Restore(c.obj, from, s.Revision, s.Bump, s.Begun)
	if err != nil {
		return err
	}
	if errs := api.ValidateEtcdRestore(restore); len(errs) > 0 {
		return fmt.Errorf("create EtcdRestore %s: %w", restore.Name, errs.ToAggregate())
	}
	if _, err = client.EtcdRestores(c.obj.Namespace).Create(ctx, restore, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create EtcdRestore %s: %w", restore.Name, granted(err, "create etcdrestores"))
	}
	return nil
}

func (c *Cluster) deleteRestore(ctx context.Context, s plan.DeleteRestore) error {
	defer c.recovery.again()
	err := c.cfg.EtcdClusters.EtcdV1beta2().EtcdRestores(c.obj.Namespace).
		Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete EtcdRestore %s: %w", s.Name, granted(err, "delete etcdrestores"))
	}
	return nil
}
