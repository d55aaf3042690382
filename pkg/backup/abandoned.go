// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/loop"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// abandonedWork hangs. Nothing may begin that does the same.
type abandonedWork struct {
	// returned closes when it has returned after all.
	returned <-chan struct{}
	reason   string // for people
}

// What is held until abandoned work has returned, for people.
const (
	holdsAll = "nothing else is begun for this EtcdBackup"
	holdsLog = "the log of changes does not continue"
)

// abandonedAfter describes abandoned work; nil: the work has returned.
func abandonedAfter(ctx context.Context, left <-chan struct{}, spec *api.BackupSpec, holds string) *abandonedWork {
	if left == nil {
		return nil
	}
	what := "the store"
	if spec.StorageType == api.BackupStorageTypeVolume {
		what = "the volume"
	}
	return &abandonedWork{returned: left, reason: fmt.Sprintf("%s does not answer: what was under way on it was to end (%v), and has not %s later; %s until it has: look at what serves %s",
		what, context.Cause(ctx), watchdog.GracePeriod, holds, what)}
}

// hasReturned reports whether abandoned work has returned.
func (h *abandonedWork) hasReturned() bool { return h != nil && loop.Closed(h.returned) }

// abandon notes what hangs, if anything. A pass begins when it returns.
func (b *Backup) abandon(h *abandonedWork) {
	b.abandoned = h
	if h != nil {
		b.WakeAfter(h.returned)
	}
}
