// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certcheck"
	podmanifest "github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// certificates looks whether the etcd operator would start the cluster with the certificates in its
// Secrets: pods that run continue without them, and those that follow would not start. A Secret that
// this operator may not read is the etcd operator's to judge.
func (a *attempt) certificates(ctx context.Context) error {
	spec, err := a.manifest.spec()
	if err != nil {
		return err
	}
	held := map[string]certcheck.Held{}
	for _, use := range certcheck.CertUses {
		name := use.Secret(spec)
		if name == "" {
			continue
		}
		secret, err := a.cfg.Kube.CoreV1().Secrets(a.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("there is no Secret %s, which %s of the EtcdCluster names: without its certificates no member of the new cluster would start; make it, or name another", name, use.Field)
		case apierrors.IsForbidden(err):
			continue
		case err != nil:
			return fmt.Errorf("look for the Secret %s, which %s of the EtcdCluster names: %w", name, use.Field, err)
		}
		h := certcheck.Held{Secret: name}
		h.ID, h.Form, h.Problem = use.IdentityIn(secret)
		held[use.Name] = h
	}
	obj := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: a.obj.Namespace, Name: a.obj.Name}, Spec: *spec}
	judged := certcheck.Judge(held, podmanifest.NamesOf(obj), spec, a.cfg.Clock.Now())
	if why := judged.Hold(true); why != "" {
		return fmt.Errorf("with the certificates that the EtcdCluster names, no member of the new cluster would start: %s", why)
	}
	return nil
}
