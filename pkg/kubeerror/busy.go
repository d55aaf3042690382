// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeerror sorts what an API server of Kubernetes answers.
package kubeerror

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// IsBusy reports whether an answer says nothing about what was asked for: the API server, or its etcd, has too
// much to do, or is about to restart. It is false for an error without an answer.
func IsBusy(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}
