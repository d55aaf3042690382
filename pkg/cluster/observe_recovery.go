// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// recoveryPeriod is the time between two looks at the EtcdBackups of a cluster without a quorum,
// and chosenPeriod if a person has chosen a way out.
const recoveryPeriod, chosenPeriod = 15 * time.Second, 2 * time.Second

// confirmTimeout bounds the requests that confirm a loss before the automatic recovery acts.
const confirmTimeout = 10 * time.Second

// recoveryReader reads the EtcdBackups and the EtcdRestore of a cluster without a quorum.
type recoveryReader struct {
	readAt time.Time
	read   plan.Recovery
	// logEnds are the ends of the logs that containers have stated since the loss, by the pods.
	logEnds map[types.UID]plan.MemberLogEnd
	// watched is since when there is no quorum and the mode is Automatic; zero otherwise.
	watched time.Time
	// looked is when the last pass saw no quorum, by the clock on the wall: a machine may have
	// slept since. afresh is when one saw none after a time without looks.
	looked, afresh time.Time
	// askedAt is when the API server was last asked to confirm the observation.
	askedAt     time.Time
	unconfirmed string
}

// again makes the next pass read once more.
func (r *recoveryReader) again() { r.readAt = time.Time{} }

// observeRecovery notes what a way out of a lost quorum needs. With a quorum, it asks nobody.
func (c *Cluster) observeRecovery(ctx context.Context, o *plan.Observation) {
	chosen, since := c.obj.Annotations[api.RecoverAnnotation], c.quorum.lost
	r := &c.recovery
	o.Recovery = plan.Recovery{Chosen: chosen, LostSince: since, LostAgain: c.quorum.unseen}
	if o.MayServeUnseen() {
		c.quorum.unseen, o.Recovery.LostAgain = o.Now, o.Now
	}
	if !o.QuorumLost() {
		*r = recoveryReader{}
		return
	}
	period := recoveryPeriod
	if st := o.Status.Recovery; chosen != "" || st != nil && st.Choice != nil && st.Choice.Automatic {
		period = chosenPeriod
	}
	o.Recovery.LookedAt = r.looked
	if r.looked = o.Now.Round(0); o.Interrupted() {
		r.afresh, r.watched, r.logEnds = o.Now, o.Now, nil // a quorum may have been back
	}
	switch {
	case !o.Spec.RecoversAutomatically():
		r.watched = time.Time{}
	case r.watched.IsZero():
		r.watched = o.Now
	}
	if r.read.Chosen != chosen || o.Now.Sub(r.readAt) >= period {
		c.readRecovery(ctx, chosen)
		r.read.NotServing, r.read.LogEnds = c.notServing(ctx, o), c.logEnds(ctx, o)
		r.readAt = o.Now
	}
	o.Recovery = r.read
	o.Recovery.LostSince, o.Recovery.WatchedSince, o.Recovery.LostAgain = since, r.watched, r.afresh
	if c.quorum.unseen.After(r.afresh) {
		o.Recovery.LostAgain = c.quorum.unseen
	}
	if o.AutomaticDue() {
		c.confirmLoss(ctx, o)
	}
}

// confirmLoss asks the API server itself before the automatic recovery acts. A cache may lag, or
// not show a pod that lost its labels. A person may just have edited the EtcdCluster.
func (c *Cluster) confirmLoss(ctx context.Context, o *plan.Observation) {
	r := &c.recovery
	if o.Now.Sub(r.askedAt) >= recoveryPeriod || r.unconfirmed == "" {
		r.askedAt = o.Now
		var err error
		r.unconfirmed, err = within(ctx, confirmTimeout, func(ctx context.Context) (string, error) { return c.contradictedBy(ctx, o) })
		if err != nil {
			r.unconfirmed = err.Error()
		}
	}
	o.Recovery.Confirmed, o.Recovery.Unconfirmed = r.unconfirmed == "", r.unconfirmed
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
	if chosen == "" && !c.obj.Spec.RecoversAutomatically() {
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

// contradictedBy says what the API server shows that the observation of a lost quorum does not; "" if
// nothing.
func (c *Cluster) contradictedBy(ctx context.Context, o *plan.Observation) (string, error) {
	latest, err := c.latest(ctx)
	if err != nil {
		return "", fmt.Errorf("read the EtcdCluster: %w", err)
	}
	if latest.Generation != c.obj.Generation || latest.DeletionTimestamp != nil || !maps.Equal(latest.Annotations, c.obj.Annotations) ||
		!equality.Semantic.DeepEqual(latest.Status.Recovery, c.status.Recovery) {
		return "somebody has just edited the EtcdCluster", nil
	}
	own := metav1.ListOptions{LabelSelector: labels.SelectorFromSet(o.Names.Labels()).String()}
	pods, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).List(ctx, own)
	if err != nil {
		return "", fmt.Errorf("list the pods: %w", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; metav1.IsControlledBy(p, c.obj) && o.Pod(p.Name) == nil {
			return "the cache does not show the pod " + p.Name, nil
		}
	}
	claims, err := c.cfg.Kube.CoreV1().PersistentVolumeClaims(c.obj.Namespace).List(ctx, own)
	if err != nil {
		return "", fmt.Errorf("list the PersistentVolumeClaims: %w", err)
	}
	for i := range claims.Items {
		v := manifest.VolumeStateOf(&claims.Items[i])
		if seen := o.Volume(v.Name); metav1.IsControlledBy(&claims.Items[i], c.obj) && (seen == nil || seen.Lost != v.Lost) {
			return "the cache does not show the PersistentVolumeClaim " + v.Name + " as it is", nil
		}
	}
	return c.hiddenMember(ctx, o)
}

// hiddenMember looks for the pods and volumes of members that nobody sees. They may have lost their
// labels.
func (c *Cluster) hiddenMember(ctx context.Context, o *plan.Observation) (string, error) {
	var names []string
	for _, m := range o.Record.Members {
		names = append(names, m.Name)
	}
	for _, m := range o.Members {
		names = append(names, m.PodName)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if name != "" && o.Pod(name) == nil {
			_, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case err == nil:
				return "the cache does not show the pod " + name, nil
			case !apierrors.IsNotFound(err):
				return "", fmt.Errorf("get pod %s: %w", name, err)
			}
		}
		if name != "" && o.Volume(name) == nil {
			claim, err := c.storedVolume(ctx, name)
			if err != nil {
				return "", err
			}
			if claim != nil {
				return "the cache does not show the PersistentVolumeClaim " + name, nil
			}
		}
	}
	return "", nil
}

// granted adds the remedy to a refusal of the API server.
func granted(err error, right string) error { return notice.Forbidden(err, "etcd", right) }
