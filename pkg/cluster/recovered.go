// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"runtime/debug"
)

// recovered runs f and returns a panic in it as an error. Each goroutine must recover for
// itself. Without this, a bug that one member triggers would end the operator for all
// clusters.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is a bug of the operator; report it: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
