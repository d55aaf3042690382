// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podOf builds the pod of a member, with what it is later recognized by.
func (c *Cluster) podOf(p newPod) (*corev1.Pod, error) {
	pod, err := buildPod(c.obj, p, c.certForms, c.cfg.OperatorImage)
	if err != nil {
		return nil, fmt.Errorf("build pod %s: %w", p.name, err)
	}
	made, err := c.template()
	if err != nil {
		return nil, err
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, podTemplateAnnotation, made.pod)
	if !p.volume {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, volumeTemplateAnnotation, made.volume)
	}
	rememberMetadata(c.obj, pod)
	rememberImage(pod)
	return pod, nil
}

// updateOf names the wish for pods of a template, for refusals.
func updateOf(t template) string { return "pods of " + t.pod }

// recyclePod deletes a pod so that it is made again. Whether the API server would
// take the new one is asked before: a pod that works is not given for one that is
// refused.
func (c *Cluster) recyclePod(ctx context.Context, s recyclePod) error {
	pod, err := c.podOf(newPod{name: s.name, version: s.version, volume: true, rejoins: true})
	if err != nil {
		return err
	}
	err = c.tryPod(ctx, pod)
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		// The old pod gives back its share.
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err):
		made, templateErr := c.template()
		if templateErr != nil {
			return templateErr
		}
		c.refusals.add(updateOf(made), err.Error(), c.cfg.Clock.Now())
		return nil // told in status
	default:
		return err
	}
	if err := c.deletePod(ctx, deletePod{name: s.name, uid: s.uid, why: s.why}); err != nil {
		return err
	}
	c.notices.memberUpdated(s)
	return nil
}

// tryPod asks the API server whether it would take a pod. A pod of its name that is
// there is no objection, for all else is checked before that.
func (c *Cluster) tryPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := c.cfg.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"):
		return nil // a webhook with side effects: only the pod itself will tell
	}
	return wrap(err, "try pod %s", pod.Name)
}

// setMetadata brings labels and annotations of a pod up to date.
func (c *Cluster) setMetadata(ctx context.Context, s setMetadata) error {
	pod, err := c.cfg.Pods.Pods(c.obj.Namespace).Get(s.pod)
	if apierrors.IsNotFound(err) {
		return errCacheBehind
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", s.pod, err)
	}
	patch, err := metadataPatch(c.obj, pod, s.template, s.uid)
	if err != nil {
		return err
	}
	patched, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Patch(ctx, s.pod, types.MergePatchType, patch, metav1.PatchOptions{})
	c.writeEnded(metadataOf(s.pod), err)
	if err != nil {
		return fmt.Errorf("%s: %w", metadataOf(s.pod), err)
	}
	// A webhook may change it back each time.
	c.postponed[metadataOf(s.pod)] = c.cfg.Clock.Now().Add(c.pauseAfterMending(metadataOf(s.pod)))
	c.podWrites.record(patched, c.cfg.Clock.Now())
	return nil
}

// metadataOf names the change of a pod's labels and annotations.
func metadataOf(pod string) string { return "set labels and annotations of pod " + pod }
