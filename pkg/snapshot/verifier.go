// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// ErrNoSnapshot is wrapped if the bytes are no snapshot of etcd at all.
var ErrNoSnapshot = errors.New("this is no snapshot of etcd")

// Verifier verifies a snapshot from a file or a store. It is an io.Writer: write the snapshot
// to it in order. It needs constant memory.
type Verifier struct {
	check *check
	head  []byte
}

// NewVerifier returns a Verifier for a snapshot of a size in bytes.
func NewVerifier(size int64) *Verifier {
	return &Verifier{check: newCheck(size), head: make([]byte, 0, headSize)}
}

// Write takes the next piece. Its error wraps ErrNoSnapshot or ErrDamaged as soon as possible:
// after the first bytes if they are no snapshot, or if it was cut off.
func (v *Verifier) Write(piece []byte) (int, error) {
	if missing := headSize - len(v.head); missing > 0 {
		v.head = append(v.head, piece[:min(missing, len(piece))]...)
		if len(v.head) == headSize {
			if err := v.begins(); err != nil {
				return 0, err
			}
		}
	}
	if err := v.check.add(piece); err != nil {
		return 0, err
	}
	return len(piece), nil
}

// Sum returns the sha256 of all bytes in hexadecimal, as sha256sum prints it, if they are a
// complete snapshot whose content fits the sha256 that etcd has appended. Otherwise its error
// wraps ErrNoSnapshot or ErrDamaged.
func (v *Verifier) Sum() (string, error) {
	switch {
	case v.check.size == 0:
		return "", fmt.Errorf("%w: it is empty", ErrNoSnapshot)
	case v.check.got == v.check.size && len(v.head) < headSize:
		return "", fmt.Errorf("%w: it has only %d bytes", ErrNoSnapshot, v.check.size)
	}
	return v.check.finish()
}

// A bbolt database begins with a page header of 16 bytes. These follow: magic, version, page
// size and flags of 4 bytes each; the root bucket of 16; the free list's page number, the page
// count, a transaction, and a checksum of the 56 bytes from the magic on, of 8 bytes each
// (internal/common/meta.go of bbolt).
const (
	headSize      = 80
	metaAt        = 16
	metaVersionAt = 20
	metaPageAt    = 24
	metaPagesAt   = 56
	metaSumAt     = 72

	boltMagic   = 0xED0CDAED
	boltVersion = 2
)

// begins checks the first bytes.
func (v *Verifier) begins() error {
	// Machines write it in their own byte order.
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(v.head[metaAt:]) == boltMagic {
		order = binary.BigEndian
	}
	if order.Uint32(v.head[metaAt:]) != boltMagic || order.Uint32(v.head[metaVersionAt:]) != boltVersion {
		return fmt.Errorf("%w: it does not begin as etcd's database does", ErrNoSnapshot)
	}
	sum := fnv.New64a()
	sum.Write(v.head[metaAt:metaSumAt])
	if sum.Sum64() != order.Uint64(v.head[metaSumAt:]) {
		return nil // a damaged file is detected at its end
	}
	// etcd sends exactly as many pages as the database has.
	pages, pageSize := order.Uint64(v.head[metaPagesAt:]), uint64(order.Uint32(v.head[metaPageAt:]))
	size := uint64(v.check.size) // not negative
	switch {
	case pageSize == 0 || pages > size/pageSize:
		return fmt.Errorf("%w: it was cut off: it has %d bytes, and its database %d pages of %d", ErrDamaged, size, pages, pageSize)
	case size%sectorSize == 0:
		return fmt.Errorf("%w: its end is not the sha256 that etcd appends: a file of a member's data directory was copied, or the end was cut off; take a backup by an EtcdBackup or `etcdctl snapshot save`", ErrNoSnapshot)
	}
	return nil
}
