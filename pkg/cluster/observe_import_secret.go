// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// readImportSecret reads the Secret with the client certificate if it is due. Content that becomes
// unusable does not affect what is in use.
func (c *Cluster) readImportSecret(ctx context.Context, o *plan.Observation) error {
	i, name := &c.importer, o.Spec.ImportFrom.ClientTLSSecret
	age := o.Now.Sub(i.readAt)
	if name == i.secret && (name == "" || age < certRetry || age < certPeriod && i.problem == "") {
		return nil
	}
	if name != i.secret {
		i.secretID, i.version = nil, ""
	}
	if name == "" {
		i.secret, i.readAt, i.problem = "", o.Now, ""
		return nil
	}
	secret, err := c.cfg.Kube.CoreV1().Secrets(c.obj.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		// Nothing is known of the Secret: the next pass reads it.
		return fmt.Errorf("read Secret %s with the client certificate of the etcd to import: %w", name, err)
	}
	i.secret, i.readAt, i.problem = name, o.Now, ""
	switch {
	case apierrors.IsNotFound(err):
		i.problem = fmt.Sprintf("Secret %s (spec.importFrom.clientTLSSecret) does not exist: create it, %s", name, certsecret.Client.Wanted())
		return nil
	case apierrors.IsForbidden(err):
		i.problem = fmt.Sprintf("Secret %s (spec.importFrom.clientTLSSecret) can't be read by the operator: grant its service account to get Secrets", name)
		return nil
	}
	version := string(secret.UID) + "/" + secret.ResourceVersion
	if version == i.version {
		return nil
	}
	id, err := certsecret.ClientIdentity(secret)
	if err != nil {
		i.problem = err.Error()
		return nil
	}
	i.secretID, i.version = id, version
	return nil
}
