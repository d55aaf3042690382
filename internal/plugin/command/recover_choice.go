// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// chooseSurvivor has the operator recover from a survivor that serves no clients: it alone can have the
// survivor's database served.
func (app *App) chooseSurvivor(ctx context.Context, a *access.Access, name string, way api.ChosenWay, opts *recoverOptions) error {
	clusters := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace)
	value := way.String()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{api.RecoverAnnotation: value}}})
	if err != nil {
		return err
	}
	if _, err := clusters.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("set the annotation %s: %w; the cluster is unchanged", api.RecoverAnnotation, err)
	}
	fmt.Fprintf(opts.progress, "%s serves no clients, so the operator has its data served: the annotation %s is %s\n", way.Member, api.RecoverAnnotation, value)
	waiting := app.waitingFor("etcd operator", a.Namespace)
	err = app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		obj, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		st := obj.Status.Recovery
		if st == nil || st.Choice == nil || st.Choice.Value != value {
			return waiting(), false, nil
		}
		c := st.Choice
		switch c.Phase {
		case api.RecoveryFailed, api.RecoveryRefused:
			return "", false, fmt.Errorf("the operator does not take the way out %s: %s", value, c.Reason)
		case api.RecoveryRestoring:
			r, err := a.Etcd.EtcdV1beta2().EtcdRestores(a.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && r.Annotations[api.RecoveryAnnotation] == c.StartDate {
				return "", true, nil
			}
			if err != nil && !apierrors.IsNotFound(err) {
				return "", false, err
			}
		}
		return fmt.Sprint(c.Phase, withReason(c.Reason)), false, nil
	})
	if err != nil {
		return err
	}
	restoring := app.waitingFor("restore operator", a.Namespace)
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) { return restored(ctx, a, name, restoring) })
}
