// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"errors"
	"fmt"
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

// Guard runs f and returns a panic in it as an error. Each goroutine must recover for itself: a bug
// that one member or one object triggers would otherwise end the operator for all.
func Guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is a bug of the operator; report it: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// GuardValue is Guard for work with a result.
func GuardValue[T any](f func() (T, error)) (result T, err error) {
	err = Guard(func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}
