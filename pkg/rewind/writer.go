// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// Limits of one transaction, and so of the memory for it.
const (
	batchBytes = 8 << 20
	batchPuts  = 10_000
)

// writer fills a database in transactions of limited size. After an error it does nothing.
type writer struct {
	db   *bbolt.DB
	name []byte

	tx          *bbolt.Tx
	into        *bbolt.Bucket
	bytes, puts int
	err         error
}

// bucket makes the bucket that the next puts go to.
func (w *writer) bucket(name []byte) {
	w.name, w.into = bytes.Clone(name), nil
	w.begin()
}

// begin opens the transaction and the bucket, if they are not.
func (w *writer) begin() {
	if w.err == nil && w.tx == nil {
		w.tx, w.err = w.db.Begin(true)
	}
	if w.err == nil && w.into == nil {
		if w.into, w.err = w.tx.CreateBucketIfNotExists(w.name); w.err == nil {
			w.into.FillPercent = 0.9 // the keys come in their order
		}
	}
}

// put adds a key to the bucket. Both slices must stay as they are until end.
func (w *writer) put(key, value []byte) {
	if w.begin(); w.err != nil {
		return
	}
	if w.err = w.into.Put(key, value); w.err != nil {
		return
	}
	w.bytes += len(key) + len(value)
	if w.puts++; w.puts >= batchPuts || w.bytes >= batchBytes {
		_ = w.end() // put and end report it
	}
}

// end completes the transaction. It returns the first error of all puts.
func (w *writer) end() error {
	if w.tx != nil {
		if w.err == nil {
			w.err = w.tx.Commit()
		} else {
			_ = w.tx.Rollback() // the file is of no use anyway
		}
		w.tx, w.into, w.bytes, w.puts = nil, nil, 0, 0
	}
	return w.err
}
