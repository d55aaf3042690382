// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/usersecret"
)

// logIn makes the client log in as the operator's user, if etcd asks for one. The error is why
// members can't be asked.
func (o *Observer) logIn(ctx context.Context, obj *api.EtcdCluster) error {
	var user etcd.Credentials
	if name := obj.Spec.CredentialsSecret(); name != "" {
		secret, err := o.access.Kube.CoreV1().Secrets(o.access.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			user, err = usersecret.Of(secret)
		}
		if err != nil {
			return fmt.Errorf("read the user of etcd: %w", err)
		}
	}
	if user != o.user {
		o.client.SetCredentials(user)
		o.user = user
	}
	return nil
}
