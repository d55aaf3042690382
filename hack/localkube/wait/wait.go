// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wait waits until a condition holds or a context ends.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tryEvery is the pause between two attempts: they wait for processes of this machine, which
// start within a second or so.
const tryEvery = 50 * time.Millisecond

// Until calls f until it succeeds. If the context ends first, the error has f's last error.
func Until(ctx context.Context, what string, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if For(ctx, tryEvery) != nil {
			return errors.Join(fmt.Errorf("wait for %s: %w", what, context.Cause(ctx)), err)
		}
	}
}

// For sleeps, unless the context ends first.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
