// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import "errors"

// StatusError is an answer over HTTP of no kind of this package.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return e.Text }

// HasStatus reports whether an error is an answer with this status.
func HasStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}
