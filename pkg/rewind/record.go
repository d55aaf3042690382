// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// record is the place of a change: its revision, and its ordinal in the transaction.
type record struct {
	main, sub int64
	tombstone bool
}

func (r record) String() string { return fmt.Sprintf("revision %d.%d", r.main, r.sub) }

const recordSize = 8 + 1 + 8

// bytes is the stored form of the record's key.
func (r record) bytes() []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, recordSize+1), uint64(r.main)) // positive
	key = binary.BigEndian.AppendUint64(append(key, '_'), uint64(r.sub))                // positive
	if r.tombstone {
		key = append(key, 't')
	}
	return key
}

// parseRecord reads the key of a record: the revision, `_`, the ordinal, and `t` if the change
// is a deletion.
func parseRecord(key []byte) (record, error) {
	if len(key) < recordSize || len(key) > recordSize+1 || key[8] != '_' || len(key) > recordSize && key[recordSize] != 't' {
		return record{}, fmt.Errorf("%x is no key of a record of etcd", key)
	}
	return record{
		main:      int64(binary.BigEndian.Uint64(key)),     // as etcd wrote it
		sub:       int64(binary.BigEndian.Uint64(key[9:])), // as etcd wrote it
		tombstone: len(key) > recordSize,
	}, nil
}

// compactionAt is the stored form of a compaction's revision.
func compactionAt(revision int64) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(revision)) // positive
	return binary.BigEndian.AppendUint64(append(key, '_'), 0)
}

// keyValue is the part of etcd's mvccpb.KeyValue that decides about a record.
type keyValue struct {
	key   []byte
	lease int64
}

// Numbers of the fields in mvccpb.KeyValue and leasepb.Lease.
const (
	fieldKey      = 1
	fieldLease    = 6
	fieldLeaseID  = 1
	fieldLeaseTTL = 2
)

var errNoKeyValue = errors.New("it is no KeyValue of etcd")

// parseKeyValue reads a record's value. The key is a part of it.
func parseKeyValue(value []byte) (kv keyValue, err error) {
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeTag(value)
		if n < 0 {
			return keyValue{}, errNoKeyValue
		}
		value = value[n:]
		switch {
		case number == fieldKey && kind == protowire.BytesType:
			kv.key, n = protowire.ConsumeBytes(value)
		case number == fieldLease && kind == protowire.VarintType:
			var lease uint64
			lease, n = protowire.ConsumeVarint(value)
			kv.lease = int64(lease) // the ID's bits
		default:
			n = protowire.ConsumeFieldValue(number, kind, value)
		}
		if n < 0 {
			return keyValue{}, errNoKeyValue
		}
		value = value[n:]
	}
	return kv, nil
}

func leaseKey(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) } // the ID's bits

// newLease is the record of a lease with a time to live in seconds.
func newLease(id, ttl int64) []byte {
	value := protowire.AppendVarint(protowire.AppendTag(nil, fieldLeaseID, protowire.VarintType), uint64(id))   // the ID's bits
	return protowire.AppendVarint(protowire.AppendTag(value, fieldLeaseTTL, protowire.VarintType), uint64(ttl)) // positive
}

// digest stands for a key, in constant space. No two keys have the same.
type digest [16]byte

func digestOf(key []byte) digest {
	sum := sha256.Sum256(key)
	return digest(sum[:16])
}
