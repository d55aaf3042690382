// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// errShared means that another EtcdBackup records at the path. Each deletes its own segments by its
// own retention, so that a log of both would lose what one of them still needs.
var errShared = errors.New("another EtcdBackup records its log of changes at this path")

// rivalsAfter is when a recording looks for one that began in the same moment.
const rivalsAfter = time.Minute

// owner is who has stored a segment.
type owner struct {
	uid, name string // "": unknown, as after a copy that lost the metadata
	until     time.Time
}

func (c *changeLog) ownerOf(ctx context.Context, place *location.Location, key changelog.Key) (owner, error) {
	stat, err := place.Stat(ctx, key.Text)
	if err != nil {
		return owner{}, fmt.Errorf("look whose log of changes is there: %w", err)
	}
	o := owner{uid: stat.Metadata[backupobject.MetaUID], name: stat.Metadata[backupobject.MetaName], until: key.Until}
	// The clocks of two operators differ, and one may have been far ahead.
	if ahead := o.until.Sub(c.cfg.Clock.Now()) > logOverdue && !stat.Modified.IsZero(); ahead || stat.Modified.After(o.until) {
		o.until = stat.Modified
	}
	return o, nil
}

func (c *changeLog) owns(o owner) bool { return o.uid == string(c.obj.UID) }

// mayRecord returns errShared if the owner of the latest segment still records: by the segment, which
// comes once a minute, or by its EtcdBackup, whose operator may be down.
func (c *changeLog) mayRecord(ctx context.Context, o owner) error {
	if c.owns(o) || o.uid == "" {
		return nil
	}
	if c.cfg.Clock.Since(o.until) <= logOverdue {
		return c.shared(o)
	}
	there, err := c.isThere(ctx, o)
	if there {
		err = c.shared(o)
	}
	return err
}

func (c *changeLog) shared(o owner) error {
	return fmt.Errorf("%w: EtcdBackup %s (UID %s), last at %s; give each its own path. If that EtcdBackup is deleted, this one continues the log three minutes later",
		errShared, o.name, o.uid, o.until.UTC().Format(time.RFC3339))
}

// isThere reports whether the owner exists in this Kubernetes, and asks for a log at the same path. Only an
// answer says that it does not.
func (c *changeLog) isThere(ctx context.Context, o owner) (bool, error) {
	namespace, name, _ := strings.Cut(o.name, "/")
	if c.cfg.Namespace != "" && namespace != c.cfg.Namespace {
		return false, nil // it may not look into others
	}
	other, err := c.cfg.Etcd.EtcdV1beta2().EtcdBackups(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look whether EtcdBackup %s, whose log of changes is there, still records: %w", o.name, err)
	}
	return string(other.UID) == o.uid && other.Spec.Continuous != nil && other.Spec.Periodic() && other.DeletionTimestamp == nil &&
		other.Spec.StorageType == c.obj.Spec.StorageType && other.Spec.Path() == c.obj.Spec.Path() &&
		(other.Namespace == c.obj.Namespace || c.obj.Spec.StorageType != api.BackupStorageTypeVolume), nil // each has its directory
}

// rivals finds another EtcdBackup that began to record in the same moment, when neither saw the
// other. All methods belong to the goroutine that stores.
type rivals struct {
	log   *changeLog
	begun time.Time
	own   map[string]bool // segments that this recording has stored; nil: the look has begun
	// found gets the result of the look; nil: none is under way.
	found  chan error
	cancel context.CancelFunc
}

// stored notes a segment. A minute after the begin, it begins to look once, beside the recording: the list
// of a long log takes minutes. It returns what a look has found.
func (r *rivals) stored(ctx context.Context, place *location.Location, key string) error {
	select {
	case err := <-r.found:
		r.cancel()
		r.found = nil
		return err
	default:
	}
	if r.own == nil {
		return nil
	}
	r.own[key] = true
	if r.log.cfg.Clock.Since(r.begun) < rivalsAfter {
		return nil
	}
	own, found := r.own, make(chan error, 1)
	r.own, r.found = nil, found
	ctx, r.cancel = context.WithCancel(ctx)
	go func() {
		failure, bug := watchdog.Recover(r.log.log, func() error { return r.look(ctx, place, own) })
		found <- errors.Join(failure, bug)
	}()
	return nil
}

// end waits until no look is under way. One that does not end in time ends the whole log, as a segment that
// the store does not take.
func (r *rivals) end() {
	if r.found == nil {
		return
	}
	r.cancel()
	watch := time.AfterFunc(storeLimit, func() { r.log.giveUp(fmt.Errorf("the store did not end its list within %s", storeLimit)) })
	defer watch.Stop()
	<-r.found
}

// look looks for segments of others since the begin. Of two EtcdBackups, the one with the lower UID
// continues: both must decide the same.
func (r *rivals) look(ctx context.Context, place *location.Location, own map[string]bool) error {
	for k, err := range segments(ctx, place) {
		if err != nil {
			return fmt.Errorf("look who else records at this path: %w", err)
		}
		if own[k.Text] || !k.Until.After(r.begun) {
			continue
		}
		o, err := r.log.ownerOf(ctx, place, k)
		if errors.Is(err, store.ErrNotFound) {
			continue // the retention has deleted it
		}
		if err != nil {
			return err
		}
		if o.uid != "" && o.uid < string(r.log.obj.UID) && o.until.After(r.begun) {
			return r.log.shared(o)
		}
	}
	return nil
}
