// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var (
	// errStoreStalls ends a request whose store gives nothing.
	errStoreStalls = errors.New("the store gives nothing")
	// errLength: the object has another length than the backup.
	errLength = errors.New("the object in the store has another size than the backup")
)

// source reads the backup from the store, with a limit to its patience.
type source struct {
	request *request
	reader  io.ReadCloser
	offset  int64
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
	return s, nil
}

// next fills the piece, of which the last ones are given only when the store has
// come to its end there: what is too long is noticed before all of it is sent.
func (s *source) next(piece []byte, left int64) (int, error) {
	s.watch.Reset(s.request.server.cfg.ProgressTimeout)
	defer s.watch.Stop()
	n, err := io.ReadAtLeast(s.reader, piece, 1)
	s.offset += int64(n)
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
	return n, nil
}

// failed is an error of the store; where the store was not waited for any longer, that.
func (s *source) failed(err error) error {
	if cause := context.Cause(s.request.ctx); errors.Is(cause, errStoreStalls) {
		err = cause
	}
	return failure{err}
}

func (s *source) close() { s.reader.Close() }
