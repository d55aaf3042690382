// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

var etcdClusters = api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural)

func (r *Restore) clusters() dynamic.ResourceInterface {
	return r.cfg.Dynamic.Resource(etcdClusters).Namespace(r.obj.Namespace)
}

// failedTo is the error of a request. What is gone, or other than it was, is looked at
// again: the world has moved on.
func failedTo(err error, right, format string, args ...any) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", fmt.Sprintf(format, args...), errBehind, err)
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), granted(err, right))
}

// metadataPatch is refused for another object of the name than was seen, and where it
// has changed meanwhile.
func metadataPatch(seen metav1.Object, changes map[string]any) ([]byte, error) {
	changes["uid"], changes["resourceVersion"] = seen.GetUID(), seen.GetResourceVersion()
	return json.Marshal(map[string]any{"metadata": changes})
}

// without is a list of finalizers less ours.
func without(finalizers []string) []string {
	left := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == api.RestoreFinalizer })
	if left == nil {
		left = []string{}
	}
	return left
}

func (s begin) apply(ctx context.Context, r *Restore) error {
	r.job = r.start(ctx, r.newAttempt(s))
	return nil
}

// patchSelf changes the metadata of the EtcdRestore.
func (r *Restore) patchSelf(ctx context.Context, changes map[string]any) error {
	patch, err := metadataPatch(r.obj, changes)
	if err != nil {
		return err
	}
	_, err = r.cfg.Etcd.EtcdV1beta2().EtcdRestores(r.obj.Namespace).Patch(ctx, r.obj.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return failedTo(err, "patch etcdrestores", "write to the EtcdRestore")
}

func (putFinalizer) apply(ctx context.Context, r *Restore) error {
	return r.patchSelf(ctx, map[string]any{"finalizers": append(without(r.obj.Finalizers), api.RestoreFinalizer)})
}

func (release) apply(ctx context.Context, r *Restore) error {
	return r.patchSelf(ctx, map[string]any{"finalizers": without(r.obj.Finalizers)})
}

func (s markRestored) apply(ctx context.Context, r *Restore) error {
	now := r.cfg.Clock.Now().UTC().Format(time.RFC3339)
	if err := r.patchSelf(ctx, map[string]any{"annotations": map[string]any{api.RestoredAnnotation: now}}); err != nil {
		return err
	}
	r.notices.restored(s.cluster)
	return nil
}

// patchCluster changes the metadata of an EtcdCluster.
func (r *Restore) patchCluster(ctx context.Context, seen *unstructured.Unstructured, changes map[string]any) error {
	patch, err := metadataPatch(seen, changes)
	if err != nil {
		return err
	}
	_, err = r.clusters().Patch(ctx, seen.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return failedTo(err, "patch etcdclusters", "write to EtcdCluster %s", seen.GetName())
}

func (s holdCluster) apply(ctx context.Context, r *Restore) error {
	return r.patchCluster(ctx, s.cluster, map[string]any{"finalizers": append(without(s.cluster.GetFinalizers()), api.RestoreFinalizer)})
}

func (s letGo) apply(ctx context.Context, r *Restore) error {
	if err := r.patchCluster(ctx, s.cluster, map[string]any{"finalizers": without(s.cluster.GetFinalizers())}); err != nil {
		return err
	}
	r.notices.lost(s.lost)
	return nil
}

func (s deleteCluster) apply(ctx context.Context, r *Restore) error {
	uid, version, background := s.cluster.GetUID(), s.cluster.GetResourceVersion(), metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background}
	if s.unchanged {
		options.Preconditions.ResourceVersion = &version
	}
	err := r.clusters().Delete(ctx, s.cluster.GetName(), options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err := failedTo(err, "delete etcdclusters", "delete EtcdCluster %s", s.cluster.GetName()); err != nil {
		return err
	}
	r.notices.deleted(s.cluster, s.why)
	return nil
}

func (s createCluster) apply(ctx context.Context, r *Restore) error {
	m, err := saved(&r.obj.Status)
	if err != nil {
		return err
	}
	cluster, err := m.cluster(s.seed.String())
	if err != nil {
		return err
	}
	_, err = r.clusters().Create(ctx, cluster, metav1.CreateOptions{})
	r.unacceptable = apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create EtcdCluster %s: %w: %w", cluster.GetName(), errBehind, err)
	case notice.NamespaceTerminates(err):
		r.namespaceEnds = true
		return nil
	case err != nil:
		return fmt.Errorf("create EtcdCluster %s: %w", cluster.GetName(), granted(err, "create etcdclusters"))
	}
	r.createdAt = append(r.createdAt, r.cfg.Clock.Now())
	r.notices.created(s.seed)
	return nil
}

// unannotate: the etcd operator heeds the annotation no more; it goes so that nobody
// wonders.
func (s unannotate) apply(ctx context.Context, r *Restore) error {
	err := r.patchCluster(ctx, s.cluster, map[string]any{"annotations": map[string]any{api.RestoreAnnotation: nil}})
	return r.tidied(deniedAnnotation, err)
}

// tidied lets pass what the operator may not tidy: it is reported once, and left.
func (r *Restore) tidied(what string, err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	r.denied[what] = true
	r.notices.untidy(err)
	return nil
}
