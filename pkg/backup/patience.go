// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// hung is work that was left to itself. Nothing may be begun that does the same.
type hung struct {
	// returned is closed when it has returned after all.
	returned <-chan struct{}
	reason   string // for people
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
		what, context.Cause(ctx), watchdog.GracePeriod, what)}
}

// hasReturned reports whether work that was left to itself has returned.
func (h *hung) hasReturned() bool {
	if h == nil {
		return false
	}
	select {
	case <-h.returned:
		return true
	default:
		return false
	}
}

// abandon keeps in mind what hangs; a pass begins when it returns.
func (b *Backup) abandon(h *hung) {
	b.hung = h
	if h != nil {
		b.WakeAfter(h.returned)
	}
}
