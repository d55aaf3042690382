// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
)

// Keys are those that attempts of a process are storing backups under. All backups
// of a process share them: two EtcdBackups may have the same path, and be due in the
// same second, and the name that v0.9.4 gave to backups contains only revision and
// second. One would take the other's place, and retention would delete it by the
// wrong one's rules.
type Keys struct {
	mu    sync.Mutex
	taken map[string]bool
}

// NewKeys returns Keys of which none is taken.
func NewKeys() *Keys { return &Keys{taken: map[string]bool{}} }

// take reports whether a place was free, and belongs to the caller until it is given
// back. To nil Keys all are free.
func (k *Keys) take(place string) bool {
	if k == nil {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.taken[place] {
		return false
	}
	k.taken[place] = true
	return true
}

func (k *Keys) giveBack(place string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.taken, place)
}

const (
	// mostShifts limits by how many seconds the time in a key may be later than the
	// beginning of the backup. A shift gives the backup a key of its own.
	mostShifts = 60
	// lookLimit bounds the question whether a key is free.
	lookLimit = 10 * time.Second
)

// ownKey returns a key for a backup on a schedule that nothing stands under, and
// what gives it back when the backup is stored, or is not.
func (a *attempt) ownKey(ctx context.Context, place *location.Location, revision int64) (string, func(), error) {
	for shift := range mostShifts {
		key := backupobject.Key(place.Key, revision, a.begun.Add(time.Duration(shift)*time.Second))
		if !a.cfg.Keys.take(place.Path(key)) {
			continue
		}
		giveBack := func() { a.cfg.Keys.giveBack(place.Path(key)) }
		// A store may hide that from credentials that may only store. Then the key counts as
		// free, which it nearly always is.
		limited, cancel := context.WithTimeoutCause(ctx, lookLimit, errTimeUp)
		_, err := place.Stat(limited, key)
		cancel()
		if err != nil {
			return key, giveBack, nil
		}
		giveBack()
	}
	return "", nil, fmt.Errorf("find a key for revision %d: those of the next %d seconds are all taken, beginning with %s: give each EtcdBackup a path of its own",
		revision, mostShifts, place.Path(backupobject.Key(place.Key, revision, a.begun)))
}
