// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/sirupsen/logrus"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// attempt is one attempt to make a backup.
type attempt struct {
	cfg *Config
	log *logrus.Entry
	obj *api.EtcdBackup // nobody changes it
	// window that the backup is for; zero where it is made once.
	window time.Time
	// base means that the log of changes needs it, and not the schedule.
	base  bool
	begun time.Time
	// look means that an earlier attempt may have stored the backup, and could not
	// record it.
	look bool
	// since is when the first of these was begun; where there was none, this one.
	since time.Time
	// failures are the attempts that failed before it, in a row.
	failures int32
	wrong    map[string]bool // keys that hold what must not be trusted
	// sent means that something was sent to the store, and left is the key under
	// which something stands now that must not be trusted.
	sent bool
	left string
	// certain means that a quorum has confirmed the snapshot that was sent.
	certain bool

	progress progress
}

// storedBackup is a complete backup in a store.
type storedBackup struct {
	place    string // bucket and key
	key      string
	revision int64
	version  string
	endpoint string
	cluster  string // its ID in hexadecimal digits; "": unknown
	applied  int64  // raft entries that it holds at the least; 0: unknown
	// unapplied is how many entries after these it holds at the most; nil: unknown, or a quorum has confirmed it.
	unapplied *int64
	size      int64
	sha256    string
	duration  time.Duration
	complete  time.Time
	// uncertain means that no quorum could say whether all writes are in it.
	uncertain bool
	// base means that it was made outside the schedule.
	base bool
	// found means that an attempt before has stored it, which began at begun.
	found bool
	begun time.Time
}

// patientLooks is how many failures in a row it takes until an attempt continues though
// it can't look for what one before it has stored.
const patientLooks = 3

// errTimeUp ends an attempt.
var errTimeUp = errors.New("the time for the backup is up")

// make makes the backup, or returns why it could not, in words for people. It
// returns when nothing is under way any more, or reports what hangs.
func (a *attempt) make(ctx context.Context) (*storedBackup, *abandonedWork, error) {
	timeout := a.obj.Spec.Timeout()
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeUp)
	defer cancel()
	limited, stopWatch := watchdog.WithStallTimeout(limited, a.cfg.Clock, a.progress.watchdogProgress())
	defer stopWatch()
	var m *storedBackup
	err, left := watchdog.Run(limited, a.cfg.Clock, func() error {
		failure, bug := watchdog.Recover(a.log.WithField("attempt", a.begun), func() (err error) {
			m, err = a.store(store.WithProgress(limited, func(n int) { a.progress.moved.Add(int64(n)) }))
			return err
		})
		return errors.Join(failure, bug)
	})
	if h := abandonedAfter(limited, left, &a.obj.Spec, holdsAll); h != nil {
		return nil, h, errors.New(h.reason)
	}
	if err == nil {
		return m, nil, nil
	}
	switch cause := context.Cause(limited); {
	case errors.Is(cause, errTimeUp) && a.progress.read.Load() == 0:
		err = fmt.Errorf("%w; it was not done after %s (spec.backupPolicy.timeoutInSecond), and had not even begun to read", err, timeout)
	case errors.Is(cause, errTimeUp):
		err = fmt.Errorf("%w; it was not done after %s, %s: raise spec.backupPolicy.timeoutInSecond", err, timeout, a.progress.far())
	case errors.Is(cause, errStalled):
		err = fmt.Errorf("%w; %s for %s or more, %s: look at the network on the way there", err, a.progress.stalled, watchdog.StallTimeout, a.progress.far())
	}
	return nil, nil, err
}

func (a *attempt) store(ctx context.Context) (*storedBackup, error) {
	place, err := a.cfg.OpenLocation(ctx, a.obj.Namespace, &a.obj.Spec)
	if err != nil {
		return nil, fmt.Errorf("open the store (storageType %s): %w", a.obj.Spec.StorageType, err)
	}
	defer place.Close()
	if a.look {
		switch m, err := a.find(ctx, place); {
		case err != nil && (ctx.Err() != nil || a.failures < patientLooks && !errors.Is(err, store.ErrDenied)):
			return nil, err
		case err != nil:
			// Credentials that may do nothing but store are good enough, and a second
			// backup is better than none.
			a.log.WithError(err).Info("can't look for what an attempt before has stored")
		case m != nil:
			return m, nil
		}
	}
	src, err := a.source(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := a.cfg.OpenSnapshot(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("take a snapshot of etcd: %w%s", err, a.advice(err))
	}
	defer snap.Close()
	a.progress.expected.Store(snap.Size)
	a.progress.begun.Store(true)

	key := place.Key
	if !a.window.IsZero() {
		own, giveBack, err := a.ownKey(ctx, place, snap.Revision)
		if err != nil {
			return nil, err
		}
		defer giveBack()
		key = own
	} else if err := a.mayReplace(ctx, place, snap.Revision); err != nil {
		return nil, err
	}
	a.log.WithFields(logrus.Fields{"endpoint": snap.Endpoint, "revision": snap.Revision, "version": snap.Version, "key": place.Path(key)}).Info("storing a backup")
	metadata := a.metadata(snap)
	body := &counted{from: snap, progress: &a.progress}
	a.sent, a.certain = true, snap.Linearizable
	object, err := place.Put(ctx, key, store.Upload{
		Body: body, Size: snap.Size,
		Metadata: metadata,
		FinalMetadata: func() map[string]string {
			return map[string]string{
				backupobject.MetaSHA256:   snap.SHA256(),
				backupobject.MetaSize:     strconv.FormatInt(a.progress.read.Load(), 10),
				backupobject.MetaDuration: a.cfg.Clock.Since(a.begun).Round(time.Millisecond).String(),
			}
		},
	})
	if errors.Is(err, store.ErrLeft) {
		a.left = key
	}
	switch {
	case err != nil && body.failed != nil: // it is not the store that failed
		return nil, fmt.Errorf("take a snapshot of etcd: %w", body.failed)
	case err != nil:
		return nil, advised(fmt.Errorf("store the backup: %w", err), &a.obj.Spec)
	case snap.SHA256() == "" || object.Size != a.progress.read.Load():
		a.left = key
		return nil, fmt.Errorf("store the backup: %s has %d bytes, and %d were read from %s: it is not whole, and must not be used; report this",
			place.Path(key), object.Size, a.progress.read.Load(), snap.Endpoint)
	}
	if other := object.Metadata[backupobject.MetaUID]; other != "" && other != string(a.obj.UID) {
		return nil, fmt.Errorf("store the backup: another EtcdBackup, %s, has put its own under %s meanwhile: give each a path of its own",
			object.Metadata[backupobject.MetaName], place.Path(key))
	}
	return &storedBackup{
		place: place.Path(key), key: key,
		cluster: metadata[backupobject.MetaCluster], unapplied: unappliedBy(metadata),
		applied:  int64(snap.RaftApplied), // far from 2^63
		revision: snap.Revision, version: snap.Version, endpoint: snap.Endpoint, uncertain: !snap.Linearizable, base: a.base,
		size: object.Size, sha256: snap.SHA256(),
		duration: a.cfg.Clock.Since(a.begun), complete: a.cfg.Clock.Now(),
	}, nil
}

// advised adds what to do to errors of a store that somebody has to act on.
func advised(err error, spec *api.BackupSpec) error {
	return location.Advised(err, spec.StorageType, spec.BackupSource)
}

// counted counts what is read, and notes why it can't be.
type counted struct {
	from     io.Reader
	progress *progress
	failed   error
}

func (c *counted) Read(p []byte) (int, error) {
	// With each call the store has taken what it was given before.
	c.progress.waiting.Store(true)
	n, err := c.from.Read(p)
	c.progress.waiting.Store(false)
	c.progress.read.Add(int64(n))
	c.progress.moved.Add(int64(n))
	c.progress.whole.Store(errors.Is(err, io.EOF))
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed = err
	}
	return n, err
}
