// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"runtime/debug"

	"github.com/sirupsen/logrus"
)

// ErrBug is the error of work that panicked.
var ErrBug = errors.New("a bug ended the attempt; report what the operator's log says")

// Recover runs work. If work panics, Recover logs the stack and returns ErrBug: the operator
// must continue for all other objects.
func Recover[T any](log *logrus.Entry, work func() T) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Errorf("panic: %v\n%s", p, debug.Stack())
			var none T
			result, err = none, ErrBug
		}
	}()
	return work(), nil
}
