// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// recoveryPeriod is the time between two looks at the EtcdBackups of a cluster without a quorum,
// and chosenPeriod if a person has chosen a way out.
const recoveryPeriod, chosenPeriod = 15 * time.Second, 2 * time.Second

// recoveryReader reads the EtcdBackups and the EtcdRestore of a cluster without a quorum.
type recoveryReader struct {
	readAt time.Time
	read   plan.Recovery
}

// again makes the next pass read once more.
func (r *recoveryReader) again() { r.readAt = time.Time{} }

// observeRecovery notes what a way out of a lost quorum needs. With a quorum, it asks nobody.
func (c *Cluster) observeRecovery(ctx context.Context, o *plan.Observation) {
	chosen, since := c.obj.Annotations[api.RecoverAnnotation], c.quorum.lost
	r := &c.recovery
	o.Recovery = plan.Recovery{Chosen: chosen, LostSince: since}
	if !o.QuorumLost() {
		*r = recoveryReader{}
		return
	}
	period := recoveryPeriod
	if chosen != "" {
		period = chosenPeriod
	}
	if r.read.Chosen != chosen || o.Now.Sub(r.readAt) >= period {
		c.readRecovery(ctx, chosen)
		r.readAt = o.Now
	}
	o.Recovery = r.read
	o.Recovery.LostSince = since
}

func (c *Cluster) readRecovery(ctx context.Context, chosen string) {
	r := &c.recovery
	r.read.Chosen, r.read.Unread, r.read.Restore = chosen, "", nil
	client := c.cfg.EtcdClusters.EtcdV1beta2()
	list, err := within(ctx, statusTimeout, func(ctx context.Context) (*api.EtcdBackupList, error) {
		return client.EtcdBackups(c.obj.Namespace).List(ctx, metav1.ListOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		r.read.Backups = nil // nobody has installed the backup operator
	case err != nil:
		r.read.Unread = fmt.Sprintf("read the EtcdBackups: %s", granted(err, "list etcdbackups"))
	default:
		r.read.Backups = slices.DeleteFunc(list.Items, func(b api.EtcdBackup) bool {
			return b.Spec.EtcdCluster == nil || b.Spec.EtcdCluster.Name != c.obj.Name
		})
	}
	if chosen == "" {
		return
	}
	restore, err := within(ctx, statusTimeout, func(ctx context.Context) (*api.EtcdRestore, error) {
		return client.EtcdRestores(c.obj.Namespace).Get(ctx, c.obj.Name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		r.read.Unread = "Kubernetes knows no EtcdRestores: deploy the restore operator (doc/restore.md)"
	case apierrors.IsNotFound(err):
	case err != nil:
		r.read.Unread = fmt.Sprintf("read the EtcdRestore %s: %s", c.obj.Name, granted(err, "get etcdrestores"))
	default:
		r.read.Restore = restore
	}
}

// granted adds the remedy to a refusal of the API server.
func granted(err error, right string) error { return notice.Forbidden(err, "etcd", right) }
