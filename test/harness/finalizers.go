// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// freeBackups deletes the EtcdBackups with a schedule and takes their finalizer off. Their operator
// goes with the namespace, so nobody else would. In each namespace that stays, Kubernetes lists and
// deletes all kinds of objects again and again.
func (n *Namespace) freeBackups(ctx context.Context) error {
	backups := n.EtcdClusters.EtcdV1beta2().EtcdBackups(n.Name)
	list, err := backups.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no operator has registered the kind
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range list.Items {
		if len(b.Finalizers) == 0 {
			continue
		}
		err := backups.Delete(ctx, b.Name, metav1.DeleteOptions{})
		if err == nil {
			_, err = backups.Patch(ctx, b.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		}
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
