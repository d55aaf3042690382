// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Secrets reads Secrets by their names. They are not watched: for that the
// operator would have to see those of others.
type Secrets struct{ Kube kubernetes.Interface }

// Get reads a Secret.
func (s Secrets) Get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret, err := s.Kube.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	return secret, granted(err, "get secrets")
}
