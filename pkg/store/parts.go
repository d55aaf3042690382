// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"
)

// Limits that the stores' multipart uploads have in common.
const (
	// minPartSize is a good size of requests: large enough for the time between
	// two of them not to count, small enough for several to fit into memory, which
	// garbage doubles. S3 takes none that are smaller. test/bench measures it.
	minPartSize = 5 << 20
	// maxPartSize bounds what is held in memory, whatever size is announced: that
	// is the word of whoever answers as an etcd member.
	maxPartSize = 64 << 20
	// maxParts is how many parts all stores take.
	maxParts = 10_000
	// usefulParts is how many parts an upload should have at most where its size
	// is known. The rest is left for content that turns out to be longer.
	usefulParts = 9500
	// partsInFlight is how many parts are sent at once, and in memory.
	partsInFlight = 3
)

// PartSize is the size of the parts in which to send content of a size; -1 where
// that is unknown. It is 5 MiB for content of up to about 50 GB, and never more
// than 64 MiB, of which 10,000 parts hold 640 GB.
func PartSize(size int64) int64 {
	const step = 1 << 20
	return min(max(minPartSize, (size/usefulParts+step)/step*step), maxPartSize)
}

// FirstPart reads content up to the size of one part. whole tells whether that is
// all of it, so that one request can send it.
func FirstPart(body io.Reader, size int64) (part []byte, whole bool, err error) {
	part = make([]byte, size)
	n, whole, err := fill(part, body)
	if err != nil {
		return nil, false, err
	}
	return part[:n], whole, nil
}

// fill reads until the part is full, or the content ends. It is not io.ReadFull:
// that says io.ErrUnexpectedEOF of content that ends within the part, and content
// that breaks off may say so, too.
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

// SendParts sends content in parts of the size of the first one, which was read
// already, but for the last one, which may be shorter. send is called with
// numbers from 1 on, for several parts at once, and must not keep the data when it
// has returned. The first error ends all, and is returned when no send is under
// way any more. SendParts returns the number of parts. Content that does not fit
// into 10,000 parts is an error.
//
// Memory for partsInFlight parts is used, again and again.
func SendParts(ctx context.Context, first []byte, body io.Reader, send func(ctx context.Context, number int, data []byte) error) (int, error) {
	sending, ctx := errgroup.WithContext(ctx)
	free := make(chan []byte, partsInFlight)
	for range partsInFlight - 1 {
		free <- nil // made when it is needed
	}
	number := 0
	start := func(buffer []byte, length int) {
		number++
		n := number
		sending.Go(func() error {
			err := send(ctx, n, buffer[:length])
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

// failed waits for what is being sent, and returns the error that ended it, or
// that of the context.
func failed(ctx context.Context, sending *errgroup.Group) error {
	if err := sending.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
