// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// snapshotSize is the size of the snapshot alone.
func snapshotSize(backup *api.RestoredBackup) int64 { return cmp.Or(backup.SnapshotSize, backup.Size) }

// openAt reads the backup on record from an offset on, and the log of changes after it. To
// close it closes the store. What has come in its place is not read: it would be found wrong
// only at its end.
func openAt(ctx context.Context, open OpenLocation, obj *api.EtcdRestore, backup *api.RestoredBackup, offset int64) (io.ReadCloser, error) {
	place, err := open(ctx, obj.Namespace, &obj.Spec)
	if err != nil {
		return nil, err
	}
	body, err := openParts(ctx, place, backup, offset)
	if err != nil {
		_ = place.Close()
		return nil, err
	}
	return body, nil
}

func openParts(ctx context.Context, place *location.Location, backup *api.RestoredBackup, offset int64) (io.ReadCloser, error) {
	key := keyIn(place.Bucket, backup.Key)
	if err := unchanged(ctx, place, key, backup); err != nil {
		return nil, err
	}
	parts := []store.Object{{Key: key, Size: snapshotSize(backup)}}
	if backup.SnapshotSize > 0 {
		log, err := selection.Segments(ctx, place, backup.ClusterID, backup.EtcdRevision, backup.Revision)
		if err != nil {
			return nil, err
		}
		parts = append(parts, log...)
	}
	size := int64(0)
	for _, part := range parts {
		size += part.Size
	}
	if size != backup.Size {
		return nil, fmt.Errorf("%w: with its log it has %d bytes, and had %d", backupserver.ErrReplaced, size, backup.Size)
	}
	body := &storedParts{ctx: ctx, place: place, parts: parts, offset: offset}
	// An error shows before the first byte is sent.
	if err := body.next(); err != nil {
		return nil, err
	}
	return body, nil
}

// storedParts reads objects one after the other.
type storedParts struct {
	ctx    context.Context //nolint:containedctx // of the request that reads
	place  *location.Location
	parts  []store.Object // that were not opened
	offset int64          // to begin at, in all of them
	body   io.ReadCloser  // nil: none is open
	left   int64          // bytes of body
}

// next opens the next object. The error is io.EOF after the last one.
func (s *storedParts) next() error {
	for len(s.parts) > 0 && s.offset >= s.parts[0].Size {
		s.offset -= s.parts[0].Size
		s.parts = s.parts[1:]
	}
	if len(s.parts) == 0 {
		return io.EOF
	}
	body, err := s.place.Get(s.ctx, s.parts[0].Key, s.offset)
	if err != nil {
		return err
	}
	s.body, s.left = body, s.parts[0].Size-s.offset
	s.parts, s.offset = s.parts[1:], 0
	return nil
}

func (s *storedParts) Read(p []byte) (int, error) {
	for {
		if s.body == nil {
			if err := s.next(); err != nil {
				return 0, err
			}
		}
		n, err := s.body.Read(p)
		s.left -= int64(n)
		switch {
		case !errors.Is(err, io.EOF):
			return n, err
		case s.left > 0:
			return n, io.ErrUnexpectedEOF
		}
		// Nobody reads what the store says when it is closed.
		_ = s.body.Close()
		if s.body = nil; n > 0 {
			return n, nil
		}
	}
}

// Close closes what is open, and the store.
func (s *storedParts) Close() error {
	var err error
	if s.body != nil {
		err = s.body.Close()
	}
	_ = s.place.Close()
	return err
}
