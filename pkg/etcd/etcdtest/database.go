// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
)

// PageSize is the page size of the databases that SnapshotFile makes.
const PageSize = 4096

// SnapshotFile returns a stored snapshot: a database of this many pages, and its sha256. It
// begins like bbolt's databases, in a byte order. The rest is not etcd's data, and differs by
// seed.
func SnapshotFile(order binary.ByteOrder, pages int, seed byte) []byte {
	database := make([]byte, pages*PageSize)
	for i := range database {
		database[i] = byte(i*7>>3) + seed
	}
	head := database[:80]
	clear(head)
	meta := head[16:72]
	order.PutUint32(meta[0:], 0xED0CDAED) // magic
	order.PutUint32(meta[4:], 2)          // version
	order.PutUint32(meta[8:], PageSize)
	order.PutUint64(meta[40:], uint64(pages)) // not negative
	checksum := fnv.New64a()
	checksum.Write(meta)
	order.PutUint64(head[72:], checksum.Sum64())
	trailer := sha256.Sum256(database)
	return append(database, trailer[:]...)
}
