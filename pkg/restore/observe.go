// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// observe asks the API server, and no cache: what is decided by it can't be taken
// back. r.obj is the EtcdRestore as it has just been read.
func (r *Restore) observe(ctx context.Context, now time.Time) (*observation, error) {
	o := &observation{
		now: now, obj: r.obj, url: r.cfg.URL,
		outcome: r.outcome, trouble: r.trouble, unacceptable: r.unacceptable,
		namespaceEnds: r.namespaceEnds, denied: r.denied,
	}
	if done(r.obj) && !hasFinalizer(r.obj) {
		return o, nil
	}
	if r.job != nil {
		text := r.reading()
		o.reading = &text
	}
	if r.offer != nil {
		o.served, o.unserved = r.offer.served.Load(), r.offer.why()
	}
	if err := r.cfg.Reached(); err != nil {
		o.unreached = err.Error()
	}
	var err error
	if o.cluster, err = r.observeCluster(ctx); err != nil {
		return nil, err
	}
	if o.token, err = r.observeToken(ctx); err != nil {
		return nil, err
	}
	if o.cluster != nil && r.obj.Annotations[api.RecoveryAnnotation] != "" && o.untouched() {
		o.lossUnseen = !r.loss.fresh(o.cluster.status.Recovery, now)
		if o.readyAgain, err = r.readyAgain(ctx, o.cluster); err != nil {
			return nil, err
		}
	}
	st := &r.obj.Status
	if committed(st) && r.obj.DeletionTimestamp != nil {
		o.namespaceEnds = r.seeNamespace(ctx)
	}
	if committed(st) && o.phase() == api.RestorePhaseStopping && st.ReplacedUID != "" {
		if err := r.observeLeftovers(ctx, o, st.ReplacedUID); err != nil {
			return nil, err
		}
	}
	r.createdAt, r.editsSeen = within(recreationWindow, now, r.createdAt), within(editsWindow, now, r.editsSeen)
	o.creations, o.edits = len(r.createdAt), len(r.editsSeen)
	policy := r.obj.Spec.EffectiveOldVolumes()
	after := done(r.obj) && policy == api.OldVolumesDeleteWhenRestored
	if st.ReplacedUID != "" && committed(st) && (after || policy == api.OldVolumesDeleteFirst) && !r.denied[deniedVolumes] {
		err = r.tidied(deniedVolumes, r.observeSetAside(ctx, o))
	}
	return o, err
}

// within leaves out the times before a window that ends now.
func within(window time.Duration, now time.Time, times []time.Time) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > window })
}

// lossFresh is how old the last report of a lost quorum may be. The etcd operator makes one a minute.
const lossFresh = 2 * time.Minute

// lossReport is the last report of a lost quorum that was seen.
type lossReport struct {
	text string    // its time, by the clock of the etcd operator
	at   time.Time // when it replaced another, by the clock of this operator; zero: it did not
}

// fresh reports whether an etcd operator has reported the loss of late, by its clock or by this
// operator's.
func (l *lossReport) fresh(st *api.RecoveryStatus, now time.Time) bool {
	if st == nil {
		return false
	}
	if st.LastUpdateTime != l.text {
		if l.text != "" {
			l.at = now
		}
		l.text = st.LastUpdateTime
	}
	at, err := time.Parse(time.RFC3339, st.LastUpdateTime)
	return err == nil && now.Sub(at).Abs() <= lossFresh || !l.at.IsZero() && now.Sub(l.at).Abs() <= lossFresh
}

// readyAgain says that enough members of a cluster are ready for a quorum; "" if they are not. etcd is
// ready only with a quorum. The etcd operator may have died before it saw that.
func (r *Restore) readyAgain(ctx context.Context, c *clusterState) (string, error) {
	voters := c.status.RecordedVoters()
	pods, err := r.pods(ctx)
	if err != nil {
		return "", err
	}
	ready := 0
	for i := range pods {
		if belongs(&pods[i], c.uid()) && pods[i].DeletionTimestamp == nil && isReady(&pods[i]) {
			ready++
		}
	}
	if voters == 0 || ready < etcd.Quorum(voters) {
		return "", nil
	}
	return fmt.Sprintf("%d of %d members of the EtcdCluster are ready, so a quorum may be back: the restore continues if that ends; to keep the cluster, delete the EtcdRestore", ready, voters), nil
}

// belongs reports whether an EtcdCluster controls an object.
func belongs(obj metav1.Object, cluster types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(obj)
	return ref != nil && ref.UID == cluster
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// pods lists the pods with the labels of the cluster's members.
func (r *Restore) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := r.cfg.Kube.CoreV1().Pods(r.obj.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{api.AppLabel: api.AppEtcd, api.ClusterLabel: r.obj.Name}.String()})
	if err != nil {
		return nil, fmt.Errorf("look for the old cluster's pods: %w", granted(err, "list pods"))
	}
	return list.Items, nil
}

// seeNamespace reports whether the namespace is being deleted. Who may not read it learns
// that from an attempt to make something in it, which makes nothing.
func (r *Restore) seeNamespace(ctx context.Context) bool {
	if !r.namespaceEnds {
		_, err := r.cfg.Kube.CoreV1().Secrets(r.obj.Namespace).Create(ctx,
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: tokenSecret(r.obj.Name), Namespace: r.obj.Namespace}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		r.namespaceEnds = notice.NamespaceTerminates(err)
	}
	return r.namespaceEnds
}

func (r *Restore) observeCluster(ctx context.Context) (*clusterState, error) {
	live, err := r.clusters().Get(ctx, r.obj.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("look at EtcdCluster %s: %w", r.obj.Name, granted(err, "get etcdclusters"))
	}
	c := &clusterState{live: live}
	var typed api.EtcdCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &typed); err != nil {
		c.unreadable = fmt.Sprintf("EtcdCluster %s is not of the form that the operator knows: %v", r.obj.Name, err)
		return c, nil
	}
	c.spec, c.status = typed.Spec, typed.Status
	return c, nil
}

func (r *Restore) observeToken(ctx context.Context) (*tokenState, error) {
	name := tokenSecret(r.obj.Name)
	secret, err := secretsOf(r.cfg.Kube).Get(ctx, r.obj.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("look at Secret %s: %w", name, err)
	}
	t := &tokenState{uid: secret.UID}
	owner := metav1.GetControllerOf(secret)
	switch {
	case owner == nil:
	case owner.UID == r.obj.UID:
		t.ours = true
		if secret.DeletionTimestamp == nil {
			t.value = string(secret.Data[api.SeedBackupTokenKey])
		}
	case owner.Kind == api.EtcdRestoreResourceKind && owner.Name == r.obj.Name:
		t.former = true
	}
	return t, nil
}

// observeLeftovers looks for what an EtcdCluster controls.
func (r *Restore) observeLeftovers(ctx context.Context, o *observation, owner types.UID) error {
	// Not by labels: what somebody has labelled otherwise would go with its owner.
	services, err := r.cfg.Kube.CoreV1().Services(r.obj.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for the old cluster's Services: %w", granted(err, "list services"))
	}
	for _, svc := range services.Items {
		if belongs(&svc, owner) && svc.DeletionTimestamp == nil {
			o.leftovers.services = append(o.leftovers.services, svc)
		}
	}
	claims, err := r.cfg.Kube.CoreV1().PersistentVolumeClaims(r.obj.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("look for the old cluster's volumes: %w", granted(err, "list persistentvolumeclaims"))
	}
	for _, claim := range claims.Items {
		if belongs(&claim, owner) && claim.DeletionTimestamp == nil {
			o.leftovers.volumes = append(o.leftovers.volumes, claim)
		}
	}
	pods, err := r.pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if belongs(&pod, owner) {
			o.leftovers.pods = append(o.leftovers.pods, pod)
		}
	}
	return nil
}

// observeSetAside looks for volumes that this restore has set aside.
func (r *Restore) observeSetAside(ctx context.Context, o *observation) error {
	claims, err := r.cfg.Kube.CoreV1().PersistentVolumeClaims(r.obj.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: labels.Set{replacedByLabel: string(r.obj.UID)}.String()})
	if err != nil {
		return fmt.Errorf("look for the old cluster's volumes: %w", granted(err, "list persistentvolumeclaims"))
	}
	for _, claim := range claims.Items {
		if claim.DeletionTimestamp == nil {
			o.setAside = append(o.setAside, claim)
		}
	}
	return nil
}
