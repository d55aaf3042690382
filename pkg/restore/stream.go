// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// snapshotSize is the size of the snapshot alone.
func snapshotSize(backup *api.RestoredBackup) int64 { return cmp.Or(backup.SnapshotSize, backup.Size) }

// openAt reads the backup on record from an offset on, and the log of changes after it. To
// close it closes the store. What has come in its place is not read: it would be found wrong
// only at its end.
func openAt(ctx context.Context, log *logList, offset int64) (io.ReadCloser, error) {
	var after []store.Object
	if log.backup.SnapshotSize > 0 {
		var err error
		if after, err = log.get(ctx); err != nil {
			return nil, err
		}
	}
	place, err := log.open(ctx, log.obj.Namespace, &log.obj.Spec)
	if err != nil {
		return nil, err
	}
	body, err := openParts(ctx, place, log.backup, after, offset)
	if err != nil {
		_ = place.Close()
		return nil, err
	}
	return body, nil
}

func openParts(ctx context.Context, place *location.Location, backup *api.RestoredBackup, log []store.Object, offset int64) (io.ReadCloser, error) {
	key := keyIn(place.Bucket, backup.Key)
	if err := unchanged(ctx, place, key, backup); err != nil {
		return nil, err
	}
	parts := append([]store.Object{{Key: key, Size: snapshotSize(backup)}}, log...)
	body := &storedParts{place: place}
	parts = body.skip(parts, offset)
	// An error shows before the first byte is sent.
	if len(parts) > 0 && parts[0].Key == key {
		base, err := place.Get(ctx, key, body.offset)
		if err != nil {
			return nil, err
		}
		body.base, body.left = base, parts[0].Size-body.offset
		body.offset, parts = 0, parts[1:]
	}
	body.next, body.stop = iter.Pull2(store.ReadAhead(ctx, parts, body.read))
	return body, nil
}

// storedParts reads a backup, and then the objects of its log.
type storedParts struct {
	place *location.Location
	base  io.ReadCloser // nil: it was read, or is not asked for
	left  int64         // bytes of base
	// next returns the next object of the log, and offset is where to begin in it.
	next   func() ([]byte, error, bool)
	stop   func()
	offset int64
	rest   []byte // of the object that is read
}

// skip leaves out the parts before an offset in all of them.
func (s *storedParts) skip(parts []store.Object, offset int64) []store.Object {
	for len(parts) > 0 && offset >= parts[0].Size {
		offset -= parts[0].Size
		parts = parts[1:]
	}
	s.offset = offset
	return parts
}

// read reads an object of the log.
func (s *storedParts) read(ctx context.Context, object store.Object) ([]byte, error) {
	body, err := s.place.Get(ctx, object.Key, 0)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text := make([]byte, object.Size)
	if _, err := io.ReadFull(body, text); err != nil {
		return nil, fmt.Errorf("%s broke off: %w", s.place.Path(object.Key), err)
	}
	return text, nil
}

func (s *storedParts) Read(p []byte) (int, error) {
	if s.base != nil {
		n, err := s.base.Read(p)
		s.left -= int64(n)
		switch {
		case !errors.Is(err, io.EOF):
			return n, err
		case s.left > 0:
			return n, io.ErrUnexpectedEOF
		}
		// Nobody reads what the store says when it is closed.
		_ = s.base.Close()
		if s.base = nil; n > 0 {
			return n, nil
		}
	}
	for len(s.rest) == 0 {
		text, err, more := s.next()
		switch {
		case !more:
			return 0, io.EOF
		case err != nil:
			return 0, err
		}
		s.rest, s.offset = text[s.offset:], 0
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends what is under way, and closes the store.
func (s *storedParts) Close() error {
	s.stop()
	var err error
	if s.base != nil {
		err = s.base.Close()
	}
	_ = s.place.Close()
	return err
}
