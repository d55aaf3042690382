// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// relabelPause is the least time between two restorations of one object's labels.
const relabelPause = time.Minute

// relabel restores the labels by which the operator finds a pod of this cluster. Without them,
// the operator can neither use nor recreate the pod. On a dead node, a pod exists for long after
// its deletion.
func (c *Cluster) relabel(ctx context.Context, pod *corev1.Pod) error {
	return c.giveLabelsBack("Pod", labelsOf(pod.Name), pod, func(lost map[string]string) error {
		patched, err := c.patchMetadata(ctx, pod.Name, pod.UID, "labels", lost)
		if err == nil {
			c.podWrites.record(patched, c.cfg.Clock.Now())
		}
		return err
	})
}

// relabelVolume restores the labels by which the cache selects a claim of this cluster.
func (c *Cluster) relabelVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	const kind = "PersistentVolumeClaim"
	return c.giveLabelsBack(kind, "give "+kind+" "+claim.Name+" its labels back", claim, func(lost map[string]string) error {
		_, err := c.patchVolume(ctx, claim.Name, claim.UID, map[string]any{"metadata": map[string]any{"labels": lost}})
		return err
	})
}

// giveLabelsBack writes the labels that an object of this cluster has lost, but not twice within
// relabelPause. what names that write. If the API server refuses, the pass continues with the object as
// it is.
func (c *Cluster) giveLabelsBack(kind, what string, object metav1.Object, write func(lost map[string]string) error) error {
	lost := map[string]string{}
	want := manifest.NamesOf(c.obj).Labels()
	want[api.NodeLabel] = object.GetName()
	for key, value := range want {
		if object.GetLabels()[key] != value {
			lost[key] = value
		}
	}
	now := c.cfg.Clock.Now()
	if len(lost) == 0 || !metav1.IsControlledBy(object, c.obj) || c.postponed.holds(what, now) {
		return nil
	}
	c.postponed.put(what, now.Add(relabelPause))
	err := write(lost)
	switch {
	case refused(err):
		c.postponed.putRefused(what, err.Error(), now.Add(relabelPause))
		c.notices.writeRefused(what, err, relabelPause)
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	}
	delete(c.notices.refused, what)
	c.notices.corrected(kind+" "+object.GetName(), "labels")
	return nil
}

// unhide makes the next pass see a pod that hinders a write, and the cache show it. It returns why the write
// has to wait: another pass may come at once, unless the pod is not the operator's, or the API server refuses
// to give it its labels back.
func (c *Cluster) unhide(ctx context.Context, pod *corev1.Pod) error {
	if !metav1.IsControlledBy(pod, c.obj) {
		return podOfOthers(pod.Name)
	}
	c.podWrites.record(pod, c.cfg.Clock.Now())
	if err := c.relabel(ctx, pod); err != nil {
		return errors.Join(err, errCacheBehind)
	}
	if why := c.postponed.refusal(labelsOf(pod.Name), c.cfg.Clock.Now()); why != "" {
		return fmt.Errorf("pod %s has lost its labels, and Kubernetes refuses to give them back: %s", pod.Name, why)
	}
	return errCacheBehind
}

// podOfOthers is why the operator can't use the name of a member.
func podOfOthers(name string) error {
	return fmt.Errorf("pod %s exists and does not belong to this EtcdCluster: delete it if nothing needs it", name)
}

// labelsOf names the write that gives a pod its labels back.
func labelsOf(pod string) string { return "give pod " + pod + " its labels back" }
