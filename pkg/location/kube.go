// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

// KubeSecrets reads Secrets by their names. It does not watch them: that would need the
// right to read all Secrets.
type KubeSecrets struct {
	Kube kubernetes.Interface
	// Operator is the kind of the operator for errors, such as "backup".
	Operator string
}

// Get reads a Secret.
func (s KubeSecrets) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := s.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return secret, notice.Forbidden(err, s.Operator, "get secrets")
}
