// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// createVolume creates the volume of a new member. If the volume exists, this operator or its
// predecessor created it for the same member.
func (c *Cluster) createVolume(ctx context.Context, p manifest.MemberPod) error {
	claim := manifest.BuildVolume(c.obj, p.Name)
	made, err := c.template()
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, manifest.VolumeTemplateAnnotation, made.Volume)
	claims := c.cfg.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace)
	_, err = claims.Create(ctx, claim, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		old, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get volume %s: %w", claim.Name, err)
		}
		if !metav1.IsControlledBy(old, c.obj) || old.DeletionTimestamp != nil {
			return fmt.Errorf("PersistentVolumeClaim %s exists, and belongs to something else or is being deleted", claim.Name)
		}
		return nil
	}
	return wrap(err, "create PersistentVolumeClaim %s", claim.Name)
}

// dropUnboundVolume deletes the claim of a seed's name that an earlier spec built, if it has never had a
// volume: a later spec can't change it, and it holds no data. The API server deletes it only as it was
// read, because a moment later it may have a volume.
func (c *Cluster) dropUnboundVolume(ctx context.Context, p manifest.MemberPod) error {
	claim, err := c.storedVolume(ctx, p.Name)
	if err != nil || claim == nil {
		return err
	}
	made, err := c.template()
	if err != nil {
		return err
	}
	v := manifest.VolumeStateOf(claim)
	follows := v.Template == made.Volume || v.Template == "" && p.Volume
	if !v.Unbound || v.Deleting || follows || !metav1.IsControlledBy(claim, c.obj) {
		return nil
	}
	what := deletionOfVolume(p.Name)
	pod, err := c.cfg.Kube.CoreV1().Pods(claim.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	switch {
	case err == nil && metav1.IsControlledBy(pod, c.obj):
		return c.unhide(ctx, pod) // it would wait for this claim
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("%s: pod of that name: %w", what, err)
	}
	err = c.cfg.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", what, errCacheBehind, err)
	}
	c.writeEnded(what, err)
	if err != nil {
		return wrap(err, "%s", what)
	}
	c.deletedVolumes[claim.UID] = true
	return fmt.Errorf("create pod %s, whose former PersistentVolumeClaim has just been deleted: %w", p.Name, errBeingDeleted)
}

// opensVolume asks the API server whether the version of a pod opens the data on its volume: the
// cache may not show yet that a later one was about to run.
func (c *Cluster) opensVolume(ctx context.Context, p manifest.MemberPod) error {
	claim, err := c.storedVolume(ctx, p.Name)
	if err != nil || claim == nil {
		return err
	}
	ran, ranErr := etcd.ParseVersion(manifest.VolumeStateOf(claim).Version)
	to, toErr := etcd.ParseVersion(p.Version)
	if ranErr == nil && toErr == nil && ran.Minor > to.Minor {
		return fmt.Errorf("create pod %s with etcd %s on data of %s: %w", p.Name, to, ran, errCacheBehind)
	}
	return nil
}

// hasVolume asks the API server whether a member's data is on a volume.
func (c *Cluster) hasVolume(ctx context.Context, name string) (bool, error) {
	claim, err := c.storedVolume(ctx, name)
	return claim != nil && claim.DeletionTimestamp == nil && metav1.IsControlledBy(claim, c.obj), err
}

// storedVolume asks the API server for a PersistentVolumeClaim; nil: there is none.
func (c *Cluster) storedVolume(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	claim, err := c.cfg.Kube.CoreV1().PersistentVolumeClaims(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PersistentVolumeClaim %s: %w", name, err)
	}
	return claim, nil
}

// deleteVolume deletes the volume of a removed member. A pod of this cluster that the cache does not show
// yet may be about to use it.
func (c *Cluster) deleteVolume(ctx context.Context, s plan.DeleteVolume) error {
	pod, err := c.cfg.Kube.CoreV1().Pods(c.obj.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err == nil && metav1.IsControlledBy(pod, c.obj) {
		return c.unhide(ctx, pod)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		c.writeEnded(deletionOfVolume(s.Name), err)
		return fmt.Errorf("pod %s of the volume to delete: %w", s.Name, err)
	}
	err = c.cfg.Kube.CoreV1().PersistentVolumeClaims(c.obj.Namespace).Delete(ctx, s.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	c.writeEnded(deletionOfVolume(s.Name), err)
	if err != nil {
		return leftOut(wrap(err, "%s", deletionOfVolume(s.Name)))
	}
	c.deletedVolumes[s.UID] = true
	return nil
}

// deletionOfVolume names the deletion of a volume.
func deletionOfVolume(name string) string { return "delete PersistentVolumeClaim " + name }

// sizeOf names the request for a volume of the spec's size.
func sizeOf(obj *api.EtcdCluster, volume string) string {
	if !obj.Spec.Persistent() {
		return ""
	}
	size := obj.Spec.Pod.PersistentVolumeClaimSpec.Resources.Requests[corev1.ResourceStorage]
	return "size " + size.String() + " of " + volume
}

// expandVolume asks for a larger volume. Its StorageClass decides whether it can grow, and the
// API server knows.
func (c *Cluster) expandVolume(ctx context.Context, s plan.ExpandVolume) error {
	claim, err := c.patchVolume(ctx, s.Name, s.UID, map[string]any{
		"spec": map[string]any{"resources": map[string]any{"requests": map[string]string{"storage": s.To}}},
	})
	why := ""
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		why = fmt.Sprintf("volume %s can't grow from %s to %s: %v", s.Name, s.From, s.To, err)
	case err != nil:
		return err
	default:
		why = sizeKept(claim, s.To)
	}
	if why == "" {
		c.postponed.accepted(sizeOf(c.obj, s.Name))
		return nil
	}
	c.postponed.putRefused(sizeOf(c.obj, s.Name), why, c.cfg.Clock.Now().Add(specRefusedPause))
	return fmt.Errorf("%w: %s", errLeftOut, why) // the status reports it
}

// sizeKept says that admission has undone a change of a volume's size; "" if it has not.
func sizeKept(claim *corev1.PersistentVolumeClaim, asked string) string {
	want, err := resource.ParseQuantity(asked)
	is := manifest.VolumeStateOf(claim).Size
	if err != nil || is.Cmp(want) >= 0 {
		return ""
	}
	return fmt.Sprintf("admission keeps volume %s at %s, although the operator asked for %s: allow this size in the webhook or policy that sets sizes", claim.Name, is.String(), asked)
}

func (c *Cluster) setVolumeVersion(ctx context.Context, s plan.SetVolumeVersion) error {
	return c.annotateVolume(ctx, s.Name, s.UID, manifest.VersionAnnotation, s.Version)
}

func (c *Cluster) setVolumeOwner(ctx context.Context, s plan.SetVolumeOwner) error {
	if s.Version != "" {
		if accepted, err := c.tryReturn(ctx, returning(s.Name, s.Version, s.Owner)); !accepted {
			return err
		}
	}
	return c.annotateVolume(ctx, s.Name, s.UID, manifest.OwnerAnnotation, s.Owner.String())
}

func (c *Cluster) annotateVolume(ctx context.Context, name string, uid types.UID, key, value string) error {
	claim, err := c.patchVolume(ctx, name, uid, map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{key: value}},
	})
	if err == nil {
		c.postponed.seeKept(changeOf(name), "PersistentVolumeClaim "+name, claim, key, value)
	}
	return err
}

// patchVolume changes a volume and returns the result.
func (c *Cluster) patchVolume(ctx context.Context, name string, uid types.UID, change map[string]any) (*corev1.PersistentVolumeClaim, error) {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"] = uid // not another one of the same name
	patch, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("patch of PersistentVolumeClaim %s: %w", name, err)
	}
	claim, err := c.cfg.Kube.CoreV1().PersistentVolumeClaims(c.obj.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	pause := correctionPause
	if err == nil { // a webhook may undo it each time
		pause = c.pauseAfterCorrection(changeOf(name))
	}
	c.postponed.extend(changeOf(name), c.cfg.Clock.Now().Add(pause))
	return claim, wrap(err, "%s", changeOf(name))
}

// changeOf names the change of a volume.
func changeOf(volume string) string { return "change PersistentVolumeClaim " + volume }
