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
	// errStoreStalls ends a request whose store gives nothing.
	errStoreStalls = errors.New("the store gives nothing")
	// ErrReplaced tells that the object in the store is not the backup any more.
	ErrReplaced = errors.New("the object in the store was replaced, or changed, since the backup was verified")
	// errLength: the object has another length than the backup.
	errLength = fmt.Errorf("%w: it has another size", ErrReplaced)
)

// source reads the backup from the store, with a limit to its patience.
type source struct {
	request *request
	reader  io.ReadCloser
	offset  int64
	// hash is of all that was read; nil where that is not all of the backup.
	hash hash.Hash
	// watch cancels the request when the store stalls.
	watch *time.Timer
}

// open begins to read the backup from an offset on. Errors are failures.
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

// next fills the piece, of which the last one is given only when the store has come
// to its end there, and what was read has the right hash: what is not the backup is
// noticed before all of it is sent.
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
		return 0, s.failed(fmt.Errorf("%w: it goes on after %d bytes", errLength, s.request.offer.backup.Size))
	case !errors.Is(err, io.EOF):
		return 0, s.failed(err)
	}
	return n, s.verify()
}

// verify looks at the hash of what was read to its end.
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

// failed is an error of the store; where the store was not waited for any longer, that.
func (s *source) failed(err error) error {
	if cause := context.Cause(s.request.ctx); errors.Is(cause, errStoreStalls) {
		err = cause
	}
	return failure{err}
}

func (s *source) close() { s.reader.Close() }
