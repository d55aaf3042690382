// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// finalize puts the finalizer of backups on a schedule on or takes it off; those of
// others are left as they are. The error is errGone where the object is.
func (b *Backup) finalize(ctx context.Context, wanted bool) error {
	obj := b.obj
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if slices.Contains(obj.Finalizers, api.BackupPeriodicFinalizer) == wanted {
			return nil
		}
		patch, err := finalizerPatch(obj, wanted)
		if err != nil {
			return err
		}
		patched, err := b.cfg.Etcd.EtcdV1beta2().EtcdBackups(obj.Namespace).Patch(ctx, obj.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err == nil {
			// The next write starts from here; the rest waits for the informer.
			b.obj = b.obj.DeepCopy()
			b.obj.ResourceVersion, b.obj.Finalizers = patched.ResourceVersion, patched.Finalizers
			return nil
		}
		if apierrors.IsConflict(err) {
			latest, getErr := b.latest(ctx)
			if getErr != nil {
				return getErr
			}
			obj = latest
		}
		return err
	})
	if apierrors.IsNotFound(err) {
		if why := b.notFound(ctx); why != nil {
			err = why
		}
	}
	switch {
	case errors.Is(err, errGone):
		return errGone
	case err != nil:
		return fmt.Errorf("write the finalizer %s: %w", api.BackupPeriodicFinalizer, err)
	}
	return nil
}

// finalizerPatch is refused for another object of the name, and where the list of
// finalizers has changed meanwhile.
func finalizerPatch(obj *api.EtcdBackup, wanted bool) ([]byte, error) {
	finalizers := slices.DeleteFunc(slices.Clone(obj.Finalizers), func(f string) bool { return f == api.BackupPeriodicFinalizer })
	if wanted {
		finalizers = append(finalizers, api.BackupPeriodicFinalizer)
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": obj.UID, "resourceVersion": obj.ResourceVersion, "finalizers": finalizers,
	}})
}
