// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Forbidden adds a remedy to an error with which the API server denies an operator a right,
// such as "get secrets". It returns other errors as they are.
func Forbidden(err error, operator, right string) error {
	if apierrors.IsForbidden(err) && !NamespaceTerminates(err) {
		return fmt.Errorf("%w: grant the service account of the %s operator to %s (example/rbac/create_role.sh)", err, operator, right)
	}
	return err
}

// NamespaceTerminates reports whether a request failed because its namespace is in deletion.
func NamespaceTerminates(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
