// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// imageOf names the change of a pod's image.
func imageOf(pod, image string) string { return "image " + image + " of pod " + pod }

// sameImage reports whether two images are the same, or have the same name and tag: admission may
// keep an image, and add its digest.
func sameImage(a, b string) bool {
	if a == b {
		return true
	}
	a, _, _ = strings.Cut(a, "@")
	b, _, _ = strings.Cut(b, "@")
	return a == b && strings.Contains(path.Base(a), ":")
}

// imageRefused takes back the version on a volume after the API server has refused the image of that version, and
// delays the next attempt: each one writes the note and takes it back, and both writes start a pass.
func (c *Cluster) imageRefused(ctx context.Context, s plan.SetVersion, asked string, why error) error {
	back, err := c.takeBackVersion(ctx, s)
	if err != nil {
		return fmt.Errorf("%w; take back the version of its volume: %w", why, err)
	}
	if back {
		c.postponed.putRefused(imageOf(s.Pod, asked), why.Error(), c.cfg.Clock.Now().Add(specRefusedPause))
	}
	return why
}

// takeBackVersion makes a volume name the version that runs on it again. Otherwise a drained pod would return with the
// refused image, and Kubernetes would refuse that pod whatever the spec says then. The note may be that of an earlier
// attempt whose answer was lost. etcd has not run as its version if the pod still has its former image.
func (c *Cluster) takeBackVersion(ctx context.Context, s plan.SetVersion) (done bool, err error) {
	if s.From == s.To || s.Previous == "" || s.Previous == s.To {
		return false, nil
	}
	claim, err := c.storedVolume(ctx, s.Pod)
	if err != nil || claim == nil || manifest.VolumeStateOf(claim).Version != s.To {
		return false, err
	}
	live, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, s.Pod, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get pod %s: %w", s.Pod, err)
	}
	if live.UID != s.UID || manifest.PodStateOf(live).Admitted != s.Admitted {
		return false, nil
	}
	return true, c.setVolumeVersion(ctx, plan.SetVolumeVersion{Name: s.Pod, UID: claim.UID, Version: s.Previous})
}

// imageKept takes back what a pod states of its version, because admission has left its image as
// it was. Otherwise the pod would look like one whose image has a wrong tag, and the operator
// would not try again.
func (c *Cluster) imageKept(ctx context.Context, s plan.SetVersion, asked string) error {
	why := fmt.Sprintf("admission leaves the image of pod %s at %s, although the operator asked for %s: allow this image in the webhook or policy that sets images",
		s.Pod, s.Admitted, asked)
	c.postponed.putRefused(imageOf(s.Pod, asked), why, c.cfg.Clock.Now().Add(specRefusedPause))
	before, err := c.cfg.Pods.Pods(c.obj.Namespace).Get(s.Pod)
	if err == nil && s.Volume != "" && s.Previous != "" {
		err = c.setVolumeVersion(ctx, plan.SetVolumeVersion{Name: s.Pod, UID: s.Volume, Version: s.Previous})
	}
	if err != nil {
		return fmt.Errorf("%s; take back its version: %w", why, err)
	}
	annotations := map[string]*string{} // nil removes one
	for _, key := range []string{manifest.VersionAnnotation, manifest.PreviousVersionAnnotation, manifest.ImageAnnotation, manifest.ReplacedAnnotation} {
		annotations[key] = nil
		if value, there := before.Annotations[key]; there {
			annotations[key] = &value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.UID, "annotations": annotations}})
	if err != nil {
		return fmt.Errorf("%s; take back its version: %w", why, err)
	}
	pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.Pod, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("%s; take back its version: %w", why, err)
	}
	c.podWrites.record(pod, c.cfg.Clock.Now())
	return errors.New(why)
}
