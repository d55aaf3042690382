// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

var (
	// errStoreStalls ends a request whose store delivers nothing.
	errStoreStalls = errors.New("the store gives nothing")
	// ErrReplaced means that the object in the store is no longer the backup.
	ErrReplaced = errors.New("the object in the store was replaced, or changed, since the backup was verified")
	// errLength: the object has another length than the backup.
	errLength = fmt.Errorf("%w: it has another size", ErrReplaced)
)

// source reads the backup from the store, with a limit on each wait.
type source struct {
	request *request
	reader  io.ReadCloser
	offset  int64
	// hash is of all bytes read; nil if the request is for a part of the backup.
	hash hash.Hash
	// watch cancels the request if the store stalls.
	watch *time.Timer
}

// open starts to read the backup from an offset on. Its errors are failures.
func (r *request) open(offset int64) (*source, error) {
	s := &source{request: r, offset: offset}
	patience := r.server.cfg.ProgressTimeout
	s.watch = time.AfterFunc(patience, func() {
		r.cancel(fmt.Errorf("%w for %v", errStoreStalls, patience))
	})
	reader, err := r.offer.backup.Open(r.ctx, offset)
	s.watch.Stop()
	if err != nil {
		return nil, s.failed(err)
	}
	s.reader = reader
	if offset == 0 {
		s.hash = sha256.New()
	}
	return s, nil
}

// next fills the piece. It returns the last piece only after the store's content has ended
// there with the right hash. So a client never receives all bytes of other content.
func (s *source) next(piece []byte, left int64) (int, error) {
	s.watch.Reset(s.request.server.cfg.ProgressTimeout)
	defer s.watch.Stop()
	n, err := io.ReadAtLeast(s.reader, piece, 1)
	s.offset += int64(n)
	if s.hash != nil {
		s.hash.Write(piece[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		return 0, s.failed(fmt.Errorf("%w: it ends after %d of %d bytes", errLength, s.offset, s.request.offer.backup.Size))
	case err != nil:
		return 0, s.failed(err)
	case int64(n) < left:
		return n, nil
	}
	var beyond [1]byte
	switch m, err := io.ReadFull(s.reader, beyond[:]); {
	case m > 0:
		return 0, s.failed(fmt.Errorf("%w: it continues after %d bytes", errLength, s.request.offer.backup.Size))
	case !errors.Is(err, io.EOF):
		return 0, s.failed(err)
	}
	return n, s.verify()
}

// verify checks the hash of the complete content.
func (s *source) verify() error {
	if s.hash == nil {
		return nil
	}
	if got, want := hex.EncodeToString(s.hash.Sum(nil)), s.request.offer.backup.SHA256; got != want {
		return s.failed(fmt.Errorf("%w: its SHA-256 is %s, and was %s", ErrReplaced, got, want))
	}
	s.request.server.right(s.request.offer)
	return nil
}

// failed returns an error of the store as a failure: errStoreStalls if the store stalled.
func (s *source) failed(err error) error {
	if cause := context.Cause(s.request.ctx); errors.Is(cause, errStoreStalls) {
		err = cause
	}
	return failure{err}
}

func (s *source) close() { s.reader.Close() }
