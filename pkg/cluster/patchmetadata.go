// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchMetadata sets some of a pod's labels or annotations, as the field says, and leaves
// the others. The UID makes sure that it is the pod that was meant.
func (c *Cluster) patchMetadata(ctx context.Context, pod string, uid types.UID, field string, values map[string]string) (*corev1.Pod, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid, field: values}})
	if err != nil {
		return nil, fmt.Errorf("patch of pod %s: %w", pod, err)
	}
	return c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
}
