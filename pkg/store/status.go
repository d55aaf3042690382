// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import "errors"

// StatusError is an answer over HTTP that is of none of the kinds of this package.
type StatusError struct {
	Code int
	Text string
}

func (e *StatusError) Error() string { return e.Text }

// HasStatus tells whether an error is an answer with this status.
func HasStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}
