// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// ErrDamaged is wrapped if the received bytes are not what the member has sent.
var ErrDamaged = errors.New("the snapshot is damaged")

// sectorSize divides the size of each database: bbolt's pages are larger.
const sectorSize = 512

// check verifies a snapshot as it arrives. One sha256 serves two purposes: without the trailer
// it must equal the trailer, and with it, it identifies the content.
type check struct {
	sum  hash.Hash
	size int64 // announced by the member
	got  int64
	// tail are the last bytes, which may be the trailer, and are not in sum yet.
	tail []byte
}

func newCheck(size int64) *check {
	return &check{sum: sha256.New(), size: size, tail: make([]byte, 0, 2*etcd.SnapshotTrailer)}
}

// add takes the next piece.
func (c *check) add(piece []byte) error {
	c.got += int64(len(piece))
	if c.got > c.size {
		return fmt.Errorf("%w: it continues after the %d bytes that were announced", ErrDamaged, c.size)
	}
	if n := len(piece) - etcd.SnapshotTrailer; n >= 0 {
		c.sum.Write(c.tail)
		c.sum.Write(piece[:n])
		c.tail = append(c.tail[:0], piece[n:]...)
		return nil
	}
	c.tail = append(c.tail, piece...)
	if n := len(c.tail) - etcd.SnapshotTrailer; n > 0 {
		c.sum.Write(c.tail[:n])
		c.tail = append(c.tail[:0], c.tail[n:]...)
	}
	return nil
}

// finish returns the sha256 of a complete snapshot in hexadecimal, or an error for an
// incomplete one.
func (c *check) finish() (string, error) {
	switch {
	case c.got != c.size:
		return "", fmt.Errorf("%w: it ends after %d of %d bytes", ErrDamaged, c.got, c.size)
	case c.got < sectorSize+etcd.SnapshotTrailer || c.got%sectorSize != etcd.SnapshotTrailer:
		return "", fmt.Errorf("%w: a database with its sha256 is not of %d bytes", ErrDamaged, c.got)
	case !bytes.Equal(c.sum.Sum(nil), c.tail):
		return "", fmt.Errorf("%w: its content does not fit the sha256 at its end", ErrDamaged)
	}
	c.sum.Write(c.tail)
	return hex.EncodeToString(c.sum.Sum(nil)), nil
}
