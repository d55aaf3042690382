// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewind takes a snapshot of etcd back to an earlier revision. A snapshot holds every
// record since its last compaction. So the state at each revision since then follows from it
// exactly: keys, values, versions, creation and modification revisions, and lease IDs.
//
// The result is a snapshot as etcd would have written it right after a compaction at that
// revision. Users, roles, alarms and members stay those of the original snapshot.
package rewind

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime/debug"
	"slices"

	"go.etcd.io/bbolt"
)

// EndedLeaseTTL is the time to live, in seconds, of a lease that ended after the revision. The
// snapshot no longer has its record. Without one, the keys would never expire.
const EndedLeaseTTL = 300

// Result describes a snapshot after To.
type Result struct {
	// Keys counts the keys that live at the revision.
	Keys int
	// Leases counts the leases that these keys refer to; EndedLeases those among them that
	// have the time to live EndedLeaseTTL.
	Leases, EndedLeases int
}

// The buckets of etcd's database that a revision decides about.
var (
	keyBucket   = []byte("key")
	leaseBucket = []byte("lease")
	metaBucket  = []byte("meta")

	scheduledCompaction = []byte("scheduledCompactRev")
	finishedCompaction  = []byte("finishedCompactRev")
)

// To writes the snapshot as it was at a revision to the file target, which must not exist. It
// verifies the SHA-256 at the end of the snapshot first, and that no revision is missing. It
// needs memory for each key that lives at the revision, some hundred bytes, and none for
// values. The error is an OutsideError if the snapshot does not hold the revision. After an
// error, target may be incomplete.
func To(snapshot, target string, revision int64) (result Result, err error) {
	if err := verify(snapshot); err != nil {
		return Result{}, err
	}
	// bbolt panics on pages that contradict each other, and reads beyond the end fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the database of the snapshot %s contradicts itself: %v", snapshot, p)
		}
	}()
	span, err := spanOf(snapshot)
	if err != nil {
		return Result{}, err
	}
	if !span.Holds(revision) {
		return Result{}, OutsideError{Revision: revision, Span: span}
	}
	from, err := bbolt.Open(snapshot, 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return Result{}, fmt.Errorf("open the snapshot: %w", err)
	}
	defer from.Close()
	if _, err := os.Stat(target); err == nil {
		return Result{}, fmt.Errorf("write the snapshot at revision %d: %s exists", revision, target)
	}
	// A crash leaves a file that nobody uses: syncs would only cost time.
	to, err := bbolt.Open(target, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return Result{}, fmt.Errorf("make a file for the snapshot at revision %d: %w", revision, err)
	}
	w := &writer{db: to}
	err = from.View(func(tx *bbolt.Tx) (err error) {
		result, err = fold(tx, w, span, revision)
		return errors.Join(err, w.end())
	})
	if err = errors.Join(err, to.Close()); err != nil {
		return Result{}, fmt.Errorf("write the snapshot at revision %d: %w", revision, err)
	}
	return result, seal(target)
}

// fold copies what the revision keeps.
func fold(tx *bbolt.Tx, w *writer, span Span, revision int64) (Result, error) {
	keys := tx.Bucket(keyBucket)
	if keys == nil {
		return Result{}, errors.New("the snapshot has no bucket of keys")
	}
	live, err := liveAt(keys, span, revision)
	if err != nil {
		return Result{}, err
	}
	result := Result{Keys: len(live)}
	leases := map[int64]bool{}
	w.bucket(keyBucket)
	cursor := keys.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		r, _ := parseRecord(k) // liveAt has parsed it
		if r.main > revision {
			break
		}
		if r.tombstone {
			// etcdutl counts from the last record when it raises the revision.
			if r.main == revision {
				w.put(k, v)
			}
			continue
		}
		content, err := parseKeyValue(v)
		if err != nil {
			return Result{}, fmt.Errorf("the record of %s: %w", r, err)
		}
		if live[digestOf(content.key)] != r {
			continue
		}
		w.put(k, v)
		if content.lease != 0 {
			leases[content.lease] = true
		}
	}
	result.Leases = len(leases)
	result.EndedLeases = copyLeases(tx.Bucket(leaseBucket), w, leases)
	return result, copyOthers(tx, w, revision)
}

// liveAt returns the last records of the keys that live at the revision.
func liveAt(keys *bbolt.Bucket, span Span, revision int64) (map[digest]record, error) {
	live := map[digest]record{}
	last := record{main: span.Oldest, sub: -1}
	cursor := keys.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		r, err := parseRecord(k)
		if err != nil {
			return nil, err
		}
		if r.main > revision {
			break
		}
		if r.main > span.Oldest {
			// Each transaction raises the revision by one, and counts its changes from 0.
			if next := r.main == last.main+1 && r.sub == 0 || r.main == last.main && r.sub == last.sub+1; !next {
				return nil, fmt.Errorf("the snapshot lacks records between %s and %s", last, r)
			}
			last = r
		}
		content, err := parseKeyValue(v)
		if err != nil {
			return nil, fmt.Errorf("the record of %s: %w", r, err)
		}
		if r.tombstone {
			delete(live, digestOf(content.key))
		} else {
			live[digestOf(content.key)] = r
		}
	}
	if last.main < revision {
		return nil, fmt.Errorf("the snapshot lacks records between %s and revision %d", last, revision)
	}
	return live, nil
}

// copyLeases writes the records of leases, and returns how many of them had none.
func copyLeases(known *bbolt.Bucket, w *writer, leases map[int64]bool) (ended int) {
	w.bucket(leaseBucket)
	for _, id := range slices.Sorted(maps.Keys(leases)) {
		key := leaseKey(id)
		var value []byte
		if known != nil {
			value = known.Get(key)
		}
		if value == nil {
			ended++
			value = newLease(id)
		}
		w.put(key, value)
	}
	return ended
}

// copyOthers copies all other buckets. The one with the revision of the compaction changes.
func copyOthers(tx *bbolt.Tx, w *writer, revision int64) error {
	return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
		if bytes.Equal(name, keyBucket) || bytes.Equal(name, leaseBucket) {
			return nil
		}
		w.bucket(name)
		meta := bytes.Equal(name, metaBucket)
		err := bucket.ForEach(func(k, v []byte) error {
			if meta && (bytes.Equal(k, scheduledCompaction) || bytes.Equal(k, finishedCompaction)) {
				return nil
			}
			w.put(k, v)
			return nil
		})
		if meta {
			w.put(scheduledCompaction, compactionAt(revision))
			w.put(finishedCompaction, compactionAt(revision))
		}
		return err
	})
}

// verify checks the SHA-256 that etcd appends to a snapshot.
func verify(snapshot string) error {
	file, err := os.Open(snapshot) //nolint:gosec // the caller's file
	if err != nil {
		return fmt.Errorf("open the snapshot: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("look at the snapshot: %w", err)
	}
	sum, stored := sha256.New(), make([]byte, sha256.Size)
	if info.Size()%512 != sha256.Size {
		return fmt.Errorf("%s is no snapshot: its %d bytes do not end with a SHA-256", snapshot, info.Size())
	}
	if _, err = io.CopyN(sum, file, info.Size()-sha256.Size); err == nil {
		_, err = io.ReadFull(file, stored)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the snapshot: %w", err)
	case !bytes.Equal(sum.Sum(nil), stored):
		return fmt.Errorf("the snapshot %s is damaged: its SHA-256 is not the one at its end", snapshot)
	}
	return nil
}

// seal appends the SHA-256 of a file to it.
func seal(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // To has just made it
	if err != nil {
		return fmt.Errorf("append the SHA-256 to the snapshot: %w", err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if err == nil {
		_, err = file.Write(sum.Sum(nil))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("append the SHA-256 to the snapshot: %w", err)
	}
	return nil
}

func spanOf(snapshot string) (Span, error) {
	file, err := os.Open(snapshot) //nolint:gosec // the caller's file
	if err != nil {
		return Span{}, fmt.Errorf("open the snapshot: %w", err)
	}
	defer file.Close()
	return ReadSpan(file)
}
