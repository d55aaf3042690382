// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	// pieceSize is how much a read returns at once, and so the memory that it takes.
	pieceSize = 256 << 10
	// patience is how long a store may deliver nothing.
	patience = time.Minute
	// tries is how often a read may start or resume without enoughProgress in between.
	tries          = 5
	enoughProgress = 8 << 20
	// firstPause is the pause before the second attempt. It doubles each time.
	firstPause = time.Second
)

// damaged is the fault of a backup.
type damaged struct {
	path string
	err  error
}

func (d damaged) Error() string        { return d.path + ": " + d.err.Error() }
func (d damaged) Unwrap() error        { return d.err }
func (d damaged) Is(target error) bool { return target == ErrDamaged }

// verify reads all of an object.
func (f finder) verify(ctx context.Context, object store.Object) (Verified, error) {
	v := f.about(object)
	verifier := snapshot.NewVerifier(object.Size)
	if size, ok := object.Metadata[backupobject.MetaSize]; ok && size != strconv.FormatInt(object.Size, 10) {
		return Verified{}, damaged{v.Path, fmt.Errorf("it has %d bytes, and by its metadata %s bytes were stored", object.Size, size)}
	}
	segments, err := f.checkHolds(ctx, object, &v)
	if err != nil {
		return Verified{}, err
	}
	all := sha256.New() // with the log
	readErr := f.read(ctx, object, io.MultiWriter(verifier, all))
	broken := errors.Is(readErr, snapshot.ErrDamaged) || errors.Is(readErr, snapshot.ErrNoSnapshot)
	if readErr != nil && !broken {
		return Verified{}, fmt.Errorf("read the backup: %w", readErr)
	}
	// Another object may have replaced this one, at worst during the read.
	now, err := f.place.Stat(ctx, object.Key)
	switch {
	case err != nil:
		return Verified{}, fmt.Errorf("look at the backup that was read: %w", err)
	case now.Size != object.Size || !now.Modified.Equal(object.Modified):
		return Verified{}, fmt.Errorf("the backup %s was replaced by another one while it was read: it is read again", v.Path)
	case broken:
		return Verified{}, damaged{v.Path, readErr}
	}
	sum, err := verifier.Sum()
	if err != nil {
		return Verified{}, damaged{v.Path, err}
	}
	if stored, ok := object.Metadata[backupobject.MetaSHA256]; ok && !strings.EqualFold(stored, sum) {
		return Verified{}, damaged{v.Path, fmt.Errorf("the sha256 of its content is %s, and by its metadata %s was stored", sum, stored)}
	}
	v.SHA256, v.Revision = sum, f.revision
	if id := clusterOf(object); id != 0 {
		v.ClusterID = fmt.Sprintf("%016x", id)
	}
	if segments == nil {
		return v, nil
	}
	size, err := f.log.follow(ctx, f.log.of[clusterOf(object)], segments, v.EtcdRevision, f.revision, all)
	if err != nil {
		return Verified{}, err
	}
	v.SnapshotSize, v.Size, v.SHA256 = v.Size, v.Size+size, hex.EncodeToString(all.Sum(nil))
	return v, nil
}

// read reads an object into the verifier, and resumes after each broken connection. The error
// is the verifier's or the store's.
func (f finder) read(ctx context.Context, object store.Object, verifier io.Writer) error {
	var at, resumedAt int64
	pause := firstPause
	for failed := 0; at < object.Size; {
		n, err := f.readFrom(ctx, object, at, verifier)
		at += n
		switch {
		case err == nil || final(err):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		if at-resumedAt >= enoughProgress {
			failed, resumedAt, pause = 0, at, firstPause
		}
		if failed++; failed == tries {
			return fmt.Errorf("%s broke off after %d of %d bytes, and %d times in a row: %w", f.place.Path(object.Key), at, object.Size, tries, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
	}
	return nil
}

// final reports whether a retry can't succeed.
func final(err error) bool {
	for _, kind := range []error{snapshot.ErrDamaged, snapshot.ErrNoSnapshot, store.ErrNotFound, store.ErrNoBucket, store.ErrDenied, store.ErrConfig} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// readFrom reads an object from an offset on, and returns how many bytes it has read.
func (f finder) readFrom(ctx context.Context, object store.Object, offset int64, verifier io.Writer) (read int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := fmt.Errorf("the store has delivered nothing for %v", patience)
	watch := time.AfterFunc(patience, func() { cancel(stalled) })
	defer watch.Stop()
	reader, err := f.place.Get(ctx, object.Key, offset)
	if err != nil {
		return 0, because(ctx, stalled, err)
	}
	defer reader.Close()
	for piece := make([]byte, min(pieceSize, object.Size-offset)); offset+read < object.Size; {
		watch.Reset(patience)
		n, err := reader.Read(piece[:min(int64(len(piece)), object.Size-offset-read)])
		if n > 0 {
			if _, err := verifier.Write(piece[:n]); err != nil {
				return read, err
			}
			read += int64(n)
			if f.progress != nil {
				f.progress(object.Key, offset+read, object.Size)
			}
		}
		switch {
		case err == nil || offset+read == object.Size:
		case errors.Is(err, io.EOF):
			return read, errors.New("the store ended it early")
		default:
			return read, because(ctx, stalled, err)
		}
	}
	return read, nil
}

// because returns the cause of a failure: the end of the context comes first.
func because(ctx context.Context, stalled, err error) error {
	if context.Cause(ctx) == stalled { //nolint:errorlint // this very one
		return stalled
	}
	return err
}
