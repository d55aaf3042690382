// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// holdImport puts the finalizer on the EtcdCluster. No member joins another etcd without it: a
// deletion would leave the members' votes there.
func (c *Cluster) holdImport(ctx context.Context) error {
	return c.setImportFinalizer(ctx, true)
}

// releaseImport takes the finalizer off.
func (c *Cluster) releaseImport(ctx context.Context) error {
	return c.setImportFinalizer(ctx, false)
}

func (c *Cluster) setImportFinalizer(ctx context.Context, want bool) error {
	latest, err := c.latest(ctx)
	if err != nil {
		return fmt.Errorf("read the EtcdCluster: %w", err)
	}
	if slices.Contains(latest.Finalizers, api.ImportFinalizer) == want {
		return errCacheBehind
	}
	finalizers := slices.DeleteFunc(latest.Finalizers, func(f string) bool { return f == api.ImportFinalizer })
	if want {
		finalizers = append(finalizers, api.ImportFinalizer)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": latest.UID, "resourceVersion": latest.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return fmt.Errorf("finalizer of the EtcdCluster: %w", err)
	}
	_, err = c.cfg.EtcdClusters.EtcdV1beta2().EtcdClusters(c.obj.Namespace).Patch(ctx, c.obj.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsConflict(err):
		return errors.Join(err, errCacheBehind)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the import needs a finalizer on the EtcdCluster: grant the operator's service account to patch etcdclusters (doc/user/rbac.md): %w", err)
	}
	return wrap(err, "finalizer of the EtcdCluster")
}
