// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Hanging is how long an fsync takes that hangs: longer than any test.
const Hanging = 24 * time.Hour

// SlowDisk has each fsync of a member take a time until it is released. It needs a local
// Kubernetes with slow disks (hack/kube up --slow-disks).
func (c *Cluster) SlowDisk(pod *corev1.Pod, takes time.Duration) (release func()) {
	c.n.t.Helper()
	directory, err := c.dataDirectory(c.n.t.Context(), pod)
	if err != nil {
		c.n.t.Fatalf("slow down the disk of %s: %v", pod.Name, err)
	}
	set := func(ctx context.Context, takes time.Duration) error {
		if _, err := c.n.hackKube(ctx, "disk", pod.Spec.NodeName, directory, takes.String()); err != nil {
			return err
		}
		c.n.record.tell("disk of "+pod.Name, "an fsync takes "+takes.String())
		return nil
	}
	if err := set(c.n.t.Context(), takes); err != nil {
		c.n.t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		ctx, cancel := later(c.n.t.Context(), time.Minute)
		defer cancel()
		if err := set(ctx, 0); err != nil {
			c.n.t.Error(err)
		}
	})
	c.n.t.Cleanup(release)
	return release
}

// dataDirectory is the name of a directory that only the data of a pod is below: its
// volume's, or the pod's own.
func (c *Cluster) dataDirectory(ctx context.Context, pod *corev1.Pod) (string, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := c.n.Kube.CoreV1().PersistentVolumeClaims(c.n.Name).Get(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		bound, err := c.n.Kube.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if bound.Spec.HostPath == nil {
			return "", fmt.Errorf("volume %s is no directory of its node", bound.Name)
		}
		return filepath.Base(bound.Spec.HostPath.Path), nil
	}
	return string(pod.UID), nil
}
