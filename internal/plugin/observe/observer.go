// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// answerTime is how long all members together are waited for.
const answerTime = 5 * time.Second

// patientTime is how long a patient Observer waits for what a member says of itself.
const patientTime = 10 * time.Second

// Observer observes the EtcdClusters of a namespace. It is not safe for concurrent use.
type Observer struct {
	access *access.Access
	dial   etcd.Dial
	now    func() time.Time
	client *etcd.Client
	// identity is what the client's connections show, for the Secret's version.
	secretVersion string
	user          etcd.Credentials
	zones         map[string]string
	statusTime    time.Duration // for what a member says of itself
}

// BePatient waits longer for members that need no quorum for their answer: where data depends
// on it, a busy machine must not make a member look lost.
func (o *Observer) BePatient() { o.statusTime = patientTime }

// New returns an observer whose connections to members are made by dial, which takes
// addresses of the form pod:port.
func New(a *access.Access, dial etcd.Dial, now func() time.Time) *Observer {
	return &Observer{access: a, dial: dial, now: now, client: etcd.NewClientThrough(nil, dial), zones: map[string]string{}, statusTime: answerTime}
}

// Close ends the connections to members.
func (o *Observer) Close() { o.client.Close() }

// Object reads an EtcdCluster.
func Object(ctx context.Context, a *access.Access, name string) (*api.EtcdCluster, error) {
	obj, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return obj, nil
	case apierrors.IsNotFound(err) && isMissingKind(err):
		return nil, noKind(err)
	default:
		return nil, err
	}
}

// Objects reads the EtcdClusters of a namespace.
func Objects(ctx context.Context, a *access.Access, namespace string) ([]api.EtcdCluster, error) {
	list, err := a.Etcd.EtcdV1beta2().EtcdClusters(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case err == nil:
		return list.Items, nil
	case apierrors.IsNotFound(err):
		return nil, noKind(err)
	default:
		return nil, err
	}
}

func noKind(err error) error {
	return fmt.Errorf("this Kubernetes has no EtcdClusters: install the etcd operator first (%w)", err)
}

// isMissingKind reports whether the API server knows no such kind, rather than no such object.
func isMissingKind(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// Pods reads the pods of an EtcdCluster's members, by name.
func Pods(ctx context.Context, a *access.Access, obj *api.EtcdCluster) ([]corev1.Pod, error) {
	selector := labels.SelectorFromSet(labels.Set{api.AppLabel: api.AppEtcd, api.ClusterLabel: obj.Name}).String()
	list, err := a.Kube.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, obj) })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

// Observe reads a cluster. It returns an error where the EtcdCluster or its pods can't be
// read. All else that can't be read is missing in the value, with the reason.
func (o *Observer) Observe(ctx context.Context, name string) (*Cluster, error) {
	obj, err := Object(ctx, o.access, name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Time: o.now(), Object: obj, Chosen: o.access.Chosen, Zones: map[string]string{}}
	if c.Pods, err = Pods(ctx, o.access, obj); err != nil {
		return nil, err
	}
	for i := range c.Pods {
		if node := c.Pods[i].Spec.NodeName; node != "" {
			c.Zones[node] = o.zone(ctx, node)
		}
	}
	c.Certificates = Certificates(ctx, o.access, obj)
	o.observeBackups(ctx, c)
	if c.NotAsked = cmp.Or(o.trust(obj, c.Certificates), o.logIn(ctx, obj)); c.NotAsked == nil {
		o.ask(ctx, c)
	}
	return c, nil
}

// zone returns the zone of a node, which does not change.
func (o *Observer) zone(ctx context.Context, name string) string {
	if zone, known := o.zones[name]; known {
		return zone
	}
	node, err := o.access.Kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		o.zones[name] = node.Labels[corev1.LabelTopologyZone]
	case apierrors.IsForbidden(err):
		o.zones[name] = "" // it stays forbidden
	}
	return o.zones[name]
}

// observeBackups reads the EtcdBackups that name the cluster, and its EtcdRestore.
func (o *Observer) observeBackups(ctx context.Context, c *Cluster) {
	c.Backups, c.NoBackups = Backups(ctx, o.access, c.Object.Name)
	restore, err := o.access.Etcd.EtcdV1beta2().EtcdRestores(o.access.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	if err == nil {
		c.Restore = restore
	}
}

// Backups reads the EtcdBackups that name a cluster. Where the backup operator was never
// installed, there are none.
func Backups(ctx context.Context, a *access.Access, cluster string) ([]api.EtcdBackup, error) {
	list, err := a.Etcd.EtcdV1beta2().EtcdBackups(a.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(b api.EtcdBackup) bool {
		return b.Spec.EtcdCluster == nil || b.Spec.EtcdCluster.Name != cluster
	}), nil
}
