// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// newToken makes up a token.
func newToken() (string, error) {
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("make up a token: %w", err)
	}
	return hex.EncodeToString(random[:]), nil
}

func (createToken) apply(ctx context.Context, r *Restore) error {
	token, err := newToken()
	if err != nil {
		return err
	}
	name := tokenSecret(r.obj.Name)
	_, err = r.cfg.Kube.CoreV1().Secrets(r.obj.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: r.obj.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.obj, api.SchemeGroupVersion.WithKind(api.EtcdRestoreResourceKind))},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{api.SeedBackupTokenKey: []byte(token)},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create Secret %s: %w: %w", name, errBehind, err)
	case notice.NamespaceTerminates(err):
		r.namespaceEnds = true
		return nil
	case err != nil:
		return fmt.Errorf("create Secret %s: %w", name, granted(err, "create secrets"))
	}
	return nil
}

func (s deleteToken) apply(ctx context.Context, r *Restore) error {
	name := tokenSecret(r.obj.Name)
	err := r.cfg.Kube.CoreV1().Secrets(r.obj.Namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.uid))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	err = failedTo(err, "delete secrets", "delete Secret %s", name)
	if s.tidying {
		return r.tidied(deniedToken, err)
	}
	return err
}

// ownersWithout are the owners of an object but for one.
func ownersWithout(obj metav1.Object, owner types.UID) []metav1.OwnerReference {
	left := []metav1.OwnerReference{}
	for _, ref := range obj.GetOwnerReferences() {
		if ref.UID != owner {
			left = append(left, ref)
		}
	}
	return left
}

// servicePatch takes a Service from its owner. One with an address of its own leads to
// nobody from then on: old pods may still serve, and what clients write to a first
// member that nobody has on record could be lost with it. The etcd operator puts the
// selector right when it takes the Service over, that for clients once the new cluster
// is on record as running. The peer Service has to name members before that.
func servicePatch(svc *corev1.Service, owner, restore types.UID) ([]byte, error) {
	patch := map[string]any{"metadata": map[string]any{
		"uid": svc.UID, "resourceVersion": svc.ResourceVersion, "ownerReferences": ownersWithout(svc, owner),
	}}
	if svc.Spec.ClusterIP != corev1.ClusterIPNone {
		patch["spec"] = map[string]any{"selector": map[string]any{restoringKey: string(restore)}}
	}
	return json.Marshal(patch)
}

func (s disownServices) apply(ctx context.Context, r *Restore) error {
	for i := range s.services {
		svc := &s.services[i]
		patch, err := servicePatch(svc, s.owner, r.obj.UID)
		if err != nil {
			return err
		}
		_, err = r.cfg.Kube.CoreV1().Services(svc.Namespace).Patch(ctx, svc.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err := failedTo(err, "patch services", "take Service %s from the old cluster", svc.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s setAside) apply(ctx context.Context, r *Restore) error {
	for i := range s.volumes {
		claim := &s.volumes[i]
		patch, err := metadataPatch(claim, map[string]any{
			"ownerReferences": ownersWithout(claim, s.owner),
			"labels":          map[string]any{api.AppLabel: nil, api.ClusterLabel: nil, api.NodeLabel: nil, replacedByLabel: string(r.obj.UID)},
			"annotations":     map[string]any{formerMemberAnnotation: claim.Labels[api.ClusterLabel] + "/" + claim.Name},
		})
		if err != nil {
			return err
		}
		_, err = r.cfg.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err := failedTo(err, "patch persistentvolumeclaims", "set PersistentVolumeClaim %s of the old cluster aside", claim.Name); err != nil {
			return err
		}
		r.log.WithField("claim", claim.Name).Info("set a volume of the old cluster aside")
	}
	return nil
}

func (s deleteVolumes) apply(ctx context.Context, r *Restore) error {
	for i := range s.volumes {
		claim := &s.volumes[i]
		err := r.cfg.Kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
		if apierrors.IsNotFound(err) {
			continue
		}
		err = failedTo(err, "delete persistentvolumeclaims", "delete PersistentVolumeClaim %s of the old cluster", claim.Name)
		if s.restored {
			err = r.tidied(deniedVolumes, err)
		}
		if err != nil {
			return err
		}
		r.log.WithField("claim", claim.Name).Info("deleted a volume of the old cluster")
	}
	return nil
}

func (s deletePods) apply(ctx context.Context, r *Restore) error {
	for i := range s.pods {
		pod := &s.pods[i]
		err := r.cfg.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err := failedTo(err, "delete pods", "delete pod %s of the old cluster", pod.Name); err != nil {
			return err
		}
	}
	return nil
}
