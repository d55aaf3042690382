// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// serveData adds a container to the pod of a survivor. A new pod would need the
// volume, and many pods have none that lives longer than they do.
func (c *Cluster) serveData(ctx context.Context, s plan.ServeData) error {
	pod, err := c.cfg.Pods.Pods(c.obj.Namespace).Get(s.Pod)
	if err != nil {
		return fmt.Errorf("get pod %s: %w", s.Pod, err)
	}
	if pod.UID != s.UID {
		return errCacheBehind
	}
	container, err := manifest.ServeData(c.obj, pod, s.Number, c.cfg.OperatorImage)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.UID},
		"spec":     map[string]any{"ephemeralContainers": []any{container}},
	})
	if err != nil {
		return fmt.Errorf("add container %s to pod %s: %w", container.Name, s.Pod, err)
	}
	_, err = c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.Pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "ephemeralcontainers")
	if err != nil {
		return fmt.Errorf("add container %s to pod %s: %w", container.Name, s.Pod, granted(err, "patch pods/ephemeralcontainers"))
	}
	return nil
}
