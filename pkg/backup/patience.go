// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// patience is for how long work may go on when its context has ended: stores remove
// what was sent. What takes longer hangs in a call to the system, which no context
// ends: a volume's server may be gone.
const patience = 30 * time.Second

// hung is work that was left to itself. Nothing may be begun that does the same.
type hung struct {
	// returned is closed when it has returned after all.
	returned <-chan struct{}
	reason   string // for people
}

// leavable does work and returns its result. Where work has not returned when its
// context has been over for patience, it is left to itself; the channel is closed
// when it has returned, and nil where it has.
func leavable[T any](ctx context.Context, clk clock.Clock, work func() T) (result T, left <-chan struct{}) {
	returned, got := make(chan struct{}), make(chan T, 1)
	go func() {
		defer close(returned)
		got <- work()
	}()
	select {
	case <-returned:
		return <-got, nil
	case <-ctx.Done():
	}
	timer := clk.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-returned:
		return <-got, nil
	case <-timer.C():
		return result, returned
	}
}

// hangs is what is to be known of work that was left to itself; nil: it was not.
func hangs(ctx context.Context, left <-chan struct{}, spec *api.BackupSpec) *hung {
	if left == nil {
		return nil
	}
	what := "the store"
	if spec.StorageType == api.BackupStorageTypeVolume {
		what = "the volume"
	}
	return &hung{returned: left, reason: fmt.Sprintf("%s does not answer: what was under way on it was to end (%v), and has not %s later; nothing else is begun for this EtcdBackup until it has: look at what serves %s",
		what, context.Cause(ctx), patience, what)}
}
