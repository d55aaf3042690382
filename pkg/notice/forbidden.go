// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ApplyRoles is the remedy for a right that an operator lacks.
const ApplyRoles = "apply the roles of the installed release again (install.yaml, helm upgrade, or for example/ create_role.sh)"

// Forbidden adds a remedy to an error with which the API server denies an operator a right,
// such as "get secrets". It returns other errors as they are.
func Forbidden(err error, operator, right string) error {
	if apierrors.IsForbidden(err) && !NamespaceTerminates(err) {
		return fmt.Errorf("%w: grant the service account of the %s operator to %s: %s", err, operator, right, ApplyRoles)
	}
	return err
}

// ErrNoStatusSubresource means that the API server has no status of an object that exists.
var ErrNoStatusSubresource = errors.New("has no status subresource, as that of an older operator: apply the one of this release")

// NoStatusSubresource returns the ErrNoStatusSubresource of a definition, such as etcdbackups.
func NoStatusSubresource(plural string) error {
	return fmt.Errorf("the CustomResourceDefinition %s %w", plural, ErrNoStatusSubresource)
}

// NamespaceTerminates reports whether a request failed because its namespace is in deletion.
func NamespaceTerminates(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
