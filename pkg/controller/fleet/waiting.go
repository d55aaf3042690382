// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"sync/atomic"
)

// Waiting is what a controller waits for until it sees all of its objects.
type Waiting struct{ what atomic.Pointer[string] }

// For says what the controller waits for from now on.
func (w *Waiting) For(what string) { w.what.Store(&what) }

// Over says that it sees all of its objects.
func (w *Waiting) Over() { w.what.Store(nil) }

// Ready returns nil while the controller sees all of its objects; the error says
// what it waits for.
func (w *Waiting) Ready() error {
	if what := w.what.Load(); what != nil {
		return fmt.Errorf("waiting for %s", *what)
	}
	return nil
}
