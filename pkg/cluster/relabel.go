// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// relabelPause is the least time between two times that one pod gets its labels back.
const relabelPause = time.Minute

// relabel gives a pod of this cluster the labels back by which the operator finds it. One
// that lost them is there and does not show: it can be neither used nor made again.
func (c *Cluster) relabel(ctx context.Context, pod *corev1.Pod) error {
	lost := map[string]string{}
	want := namesOf(c.obj).labels()
	want[nodeLabel] = pod.Name
	for key, value := range want {
		if pod.Labels[key] != value {
			lost[key] = value
		}
	}
	what := "label pod " + pod.Name
	now := c.cfg.Clock.Now()
	if len(lost) == 0 || !metav1.IsControlledBy(pod, c.obj) || pod.DeletionTimestamp != nil || c.postponed.holds(what, now) {
		return nil
	}
	c.postponed[what] = now.Add(relabelPause)
	patched, err := c.patchMetadata(ctx, pod.Name, pod.UID, "labels", lost)
	if err != nil {
		return fmt.Errorf("give pod %s its labels back: %w", pod.Name, err)
	}
	c.podWrites.record(patched, now)
	c.notices.mended("Pod "+pod.Name, "labels")
	return nil
}

// findUnlabelled looks for the pods of members on record that the cache does not show. They
// count as lost otherwise, with their data, and the quorum with those of too many: then
// nothing else would find out that they are there.
func (c *Cluster) findUnlabelled(ctx context.Context, o *observation) error {
	if o.ending || o.record == nil {
		return nil
	}
	found := false
	for _, m := range o.record.Members {
		what := "look for pod " + m.Name
		if m.Name == "" || o.pod(m.Name) != nil || c.postponed.holds(what, o.now) {
			continue
		}
		pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && (pod.DeletionTimestamp != nil || !metav1.IsControlledBy(pod, c.obj)):
			c.postponed[what] = o.now.Add(relabelPause)
		case err != nil:
			return fmt.Errorf("pod %s of a member on record: %w", m.Name, err)
		default:
			found = true
			c.podWrites.record(pod, o.now)
			if err := c.relabel(ctx, pod); err != nil {
				return err
			}
		}
	}
	if found {
		return errCacheBehind
	}
	return nil
}
