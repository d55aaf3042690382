// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// Limits of all stores' multipart uploads.
const (
	// minPartSize is a compromise: large enough to make the time between two requests
	// irrelevant, small enough for several parts in memory, which garbage doubles. S3 refuses
	// smaller parts. test/bench measures it.
	minPartSize = 5 << 20
	// maxPartSize bounds the memory, whatever size a server announces that claims to be an
	// etcd member.
	maxPartSize = 64 << 20
	// maxParts is how many parts all stores take.
	maxParts = 10_000
	// usefulParts is the intended maximum of parts if the size is known. The rest is for
	// content that turns out longer.
	usefulParts = 9500
	// firstBuffer is the memory for the first read.
	firstBuffer = 64 << 10
	// partsInFlight is how many parts are in memory and sent at once.
	partsInFlight = 3
)

// PartSize returns the size of parts for content of a size; -1: unknown. It is 5 MiB for
// content up to about 50 GB, and never more than 64 MiB. 10,000 parts of 64 MiB hold 640 GB.
func PartSize(size int64) int64 {
	const step = 1 << 20
	return min(max(minPartSize, (size/usefulParts+step)/step*step), maxPartSize)
}

// FirstPart reads content up to the size of one part. whole reports whether that is all, so
// that one request can send it.
func FirstPart(body io.Reader, size int64) (part []byte, whole bool, err error) {
	// Most content of a log of changes is small: the memory follows what arrives.
	for n := 0; ; {
		grown := make([]byte, min(size, max(int64(len(part))*4, firstBuffer)))
		copy(grown, part[:n])
		part = grown
		m, whole, err := fill(part[n:], body)
		if err != nil {
			return nil, false, err
		}
		if n += m; whole || int64(n) == size {
			return part[:n], whole, nil
		}
	}
}

// fill reads until the part is full or the content ends. io.ReadFull would not do: its
// io.ErrUnexpectedEOF means content that ends within the part, and content that breaks off may
// return the same error.
func fill(part []byte, body io.Reader) (n int, ended bool, err error) {
	for n < len(part) {
		m, err := body.Read(part[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// SendParts sends content in parts. The first one was read already and sets their size. The
// last one may be shorter. send gets numbers from 1 on, runs for several parts at once, and
// must not keep the data after its return. The first error ends the upload. SendParts returns
// it after all sends have returned. Otherwise it returns the number of parts. It fails for
// content that does not fit into 10,000 parts.
//
// It reuses memory for partsInFlight parts.
func SendParts(ctx context.Context, first []byte, body io.Reader, send func(ctx context.Context, number int, data []byte) error) (int, error) {
	sending, ctx := errgroup.WithContext(ctx)
	free := make(chan []byte, partsInFlight)
	for range partsInFlight - 1 {
		free <- nil // allocated on first use
	}
	number := 0
	start := func(buffer []byte, length int) {
		number++
		n := number
		sending.Go(func() error {
			err := watchdog.Guard(func() error { return send(ctx, n, buffer[:length]) })
			free <- buffer
			return err
		})
	}
	start(first, len(first))
	for {
		var buffer []byte
		select {
		case buffer = <-free:
		case <-ctx.Done():
			return number, failed(ctx, sending)
		}
		if ctx.Err() != nil {
			return number, failed(ctx, sending)
		}
		if buffer == nil {
			buffer = make([]byte, len(first))
		}
		length, ended, err := fill(buffer, body)
		switch {
		case err == nil && length > 0 && number == maxParts:
			err = fmt.Errorf("the content is too large: it does not fit into %d parts of %d bytes, which is as many as stores take", maxParts, len(first))
			fallthrough
		case err != nil:
			sending.Go(func() error { return err })
		case length > 0:
			start(buffer, length)
		}
		if ended || err != nil {
			return number, sending.Wait()
		}
	}
}

// failed waits for the running sends, and returns the first error, or the context's.
func failed(ctx context.Context, sending *errgroup.Group) error {
	if err := sending.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
