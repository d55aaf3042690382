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

// chooseSurvivor has the operator recover from a survivor. It alone can have the survivor's data
// served, with what the log holds.
func (app *App) chooseSurvivor(ctx context.Context, a *access.Access, name string, way api.ChosenWay, opts *recoverOptions) error {
	clusters := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace)
	value := way.String()
	if err := app.dropChoice(ctx, a, name, value, opts); err != nil {
		return err
	}
	if err := annotateChoice(ctx, a, name, &value); err != nil {
		return fmt.Errorf("%w; the cluster is unchanged", err)
	}
	fmt.Fprintf(opts.progress, "The annotation %s is %s\n", api.RecoverAnnotation, value)
	if !opts.wait {
		return nil
	}
	waiting := app.waitingFor("etcd operator", a.Place())
	err := app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) {
		obj, err := clusters.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		c := choiceOf(obj)
		if c == nil || c.Value != value || c.Automatic { // the operator has not seen the annotation yet
			return waiting(), false, nil
		}
		switch c.Phase {
		case api.RecoveryFailed:
			return "", false, fmt.Errorf("the operator does not take the way out %s: %s", value, c.Reason)
		case api.RecoveryRefused:
			// Later, when nobody expects it, the operator would not refuse it.
			if err := annotateChoice(ctx, a, name, nil); err != nil {
				return "", false, fmt.Errorf("the operator does not take the way out %s yet: %s; take it back: %w", value, c.Reason, err)
			}
			return "", false, fmt.Errorf("the operator does not take the way out %s: %s; the annotation is gone again, and the cluster is unchanged", value, c.Reason)
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
	restoring := app.waitingFor("restore operator", a.Place())
	return app.until(ctx, opts.waitOptions, func(ctx context.Context) (string, bool, error) { return restored(ctx, a, name, restoring) })
}

// dropChoice takes an earlier choice of the same way back, and waits until the operator has seen
// that. Otherwise its end would count as the end of the next one.
func (app *App) dropChoice(ctx context.Context, a *access.Access, name, value string, opts *recoverOptions) error {
	dropped := false
	waiting := app.waitingFor("etcd operator", a.Place())
	unseen := opts.waitOptions
	unseen.rest = "the earlier choice is taken back, and the cluster is unchanged"
	return app.until(ctx, unseen, func(ctx context.Context) (string, bool, error) {
		obj, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", false, err
		}
		c := choiceOf(obj)
		if c == nil || c.Value != value || c.Automatic {
			return "", true, nil
		}
		if !dropped {
			if err := annotateChoice(ctx, a, name, nil); err != nil {
				return "", false, fmt.Errorf("%w; the cluster is unchanged", err)
			}
			dropped = true
		}
		return waiting(), false, nil
	})
}

func choiceOf(obj *api.EtcdCluster) *api.RecoveryChoice {
	if obj.Status.Recovery == nil {
		return nil
	}
	return obj.Status.Recovery.Choice
}

// annotateChoice sets the annotation that chooses a way out; nil removes it.
func annotateChoice(ctx context.Context, a *access.Access, name string, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{api.RecoverAnnotation: value}}})
	if err != nil {
		return err
	}
	if _, err := a.Etcd.EtcdV1beta2().EtcdClusters(a.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("set the annotation %s: %w", api.RecoverAnnotation, err)
	}
	return nil
}
