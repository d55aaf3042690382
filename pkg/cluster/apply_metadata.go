// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// patchMetadata sets some of a pod's labels or annotations, according to the field, and keeps
// the others. The UID ensures that it is the same pod.
func (c *Cluster) patchMetadata(ctx context.Context, pod string, uid types.UID, field string, values map[string]string) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, field: values}})
	if err != nil {
		return nil, fmt.Errorf("patch of pod %s: %w", pod, err)
	}
	return c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
}

// setMetadata updates labels and annotations of a pod.
func (c *Cluster) setMetadata(ctx context.Context, s plan.SetMetadata) error {
	pod, err := c.cfg.Pods.Pods(c.obj.Namespace).Get(s.Pod)
	if apierrors.IsNotFound(err) {
		return errCacheBehind
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", s.Pod, err)
	}
	patch, err := manifest.MetadataPatch(c.obj, pod, c.templateFor(manifest.PodStateOf(pod), s.Template), s.UID)
	if err != nil {
		return err
	}
	patched, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.Pod, types.MergePatchType, patch, metav1.PatchOptions{})
	c.writeEnded(metadataOf(s.Pod), err)
	if err != nil {
		return fmt.Errorf("%s: %w", metadataOf(s.Pod), err)
	}
	// A webhook may revert it each time.
	pause := c.pauseAfterCorrection(metadataOf(s.Pod))
	c.postponed.put(c.forThisSpec(metadataOf(s.Pod)), c.cfg.Clock.Now().Add(pause))
	c.podWrites.record(patched, c.cfg.Clock.Now())
	return nil
}

// metadataOf names the change of a pod's labels and annotations.
func metadataOf(pod string) string { return "set labels and annotations of pod " + pod }
