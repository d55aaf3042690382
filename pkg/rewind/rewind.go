// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewind takes a snapshot of etcd back to an earlier revision. A snapshot holds every
// record since its last compaction. So the state at each revision since then follows from it
// exactly: keys, values, versions, creation and modification revisions, and lease IDs.
//
// The result is a snapshot as etcd would have written it right after a compaction at that
// revision. Users, roles, alarms and members stay those of the original snapshot.
//
// It also takes a snapshot forward, by the segments of a log (pkg/changelog).
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
// snapshot no longer has its record, and a log may never have had it. Without one, the keys
// would never expire.
const EndedLeaseTTL = 300

// Result describes a snapshot after To.
type Result struct {
	// Keys counts the keys that live at the revision.
	Keys int
	// Leases counts the leases that these keys refer to; EndedLeases those among them that
	// have the time to live EndedLeaseTTL.
	Leases, EndedLeases int
	// Checkpoint is the revision up to which the hash is the one that etcd reported; 0: the
	// log has none to compare with.
	Checkpoint int64
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
func To(snapshot, target string, revision int64) (Result, error) {
	return ToWithLog(snapshot, -1, target, revision)
}

// ToWithLog is To for a file that begins with a snapshot of a size in bytes. Stored segments of
// a log follow it. They continue the snapshot without a gap, up to the revision at the least.
// It also needs memory for one segment. The error wraps changelog.ErrGap or
// changelog.ErrDamaged for a log that can't be used, and ErrHash if the result differs from what
// etcd has reported of itself. If the size is -1, the whole file is the
// snapshot.
func ToWithLog(file string, size int64, target string, revision int64) (result Result, err error) {
	source, err := open(file, size)
	if err != nil {
		return Result{}, err
	}
	defer source.close()
	if err := verify(source.snapshot()); err != nil {
		return Result{}, err
	}
	// bbolt panics on pages that contradict each other, and reads beyond the end fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the database of the snapshot %s contradicts itself: %v", file, p)
		}
	}()
	span, err := ReadSpan(source.snapshot())
	if err != nil {
		return Result{}, err
	}
	if revision < span.Oldest || revision > span.Newest && !source.hasLog() {
		return Result{}, OutsideError{Revision: revision, Span: span}
	}
	from, err := bbolt.Open(file, 0, &bbolt.Options{ReadOnly: true})
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
	f := &fold{span: span, revision: revision, source: source, w: &writer{db: to}, leases: map[int64]bool{}, granted: map[int64]int64{}}
	err = from.View(func(tx *bbolt.Tx) error { return errors.Join(f.run(tx), f.w.end()) })
	if err = errors.Join(err, to.Close()); err != nil {
		return Result{}, fmt.Errorf("write the snapshot at revision %d: %w", revision, err)
	}
	return f.result, seal(target)
}

// fold copies what a revision keeps.
type fold struct {
	span     Span
	revision int64
	source   *source
	w        *writer

	live    map[digest]record // the last records of the keys that live at the revision
	leases  map[int64]bool    // that they refer to
	granted map[int64]int64   // times to live, by the log
	result  Result
}

func (f *fold) run(tx *bbolt.Tx) (err error) {
	keys := tx.Bucket(keyBucket)
	if keys == nil {
		return errors.New("the snapshot has no bucket of keys")
	}
	if f.live, err = liveAt(keys, f.span, min(f.revision, f.span.Newest)); err != nil {
		return err
	}
	if f.revision > f.span.Newest {
		if err := f.followLog(keys); err != nil {
			return err
		}
	}
	f.result.Keys = len(f.live)
	f.w.bucket(keyBucket)
	if err := f.copyRecords(keys); err != nil {
		return err
	}
	if f.revision > f.span.Newest {
		if err := f.copyLog(); err != nil {
			return err
		}
	}
	f.result.Leases = len(f.leases)
	f.copyLeases(tx.Bucket(leaseBucket))
	return copyOthers(tx, f.w, f.revision)
}

// copyRecords copies records of the snapshot.
func (f *fold) copyRecords(keys *bbolt.Bucket) error {
	cursor := keys.Cursor()
	for k, v := cursor.First(); k != nil; k, v = cursor.Next() {
		r, _ := parseRecord(k) // liveAt has parsed it
		if r.main > f.revision {
			break
		}
		if err := f.keep(r, k, v); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a record if the revision keeps it.
func (f *fold) keep(r record, key, value []byte) error {
	if r.tombstone {
		// etcdutl counts from the last record when it raises the revision.
		if r.main == f.revision {
			f.w.put(key, value)
		}
		return nil
	}
	content, err := parseKeyValue(value)
	if err != nil {
		return fmt.Errorf("the record of %s: %w", r, err)
	}
	if f.live[digestOf(content.key)] != r {
		return nil
	}
	f.w.put(key, value)
	if content.lease != 0 {
		f.leases[content.lease] = true
	}
	return nil
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

// copyLeases writes the records of leases, and counts those that had none. The log is newer
// than the snapshot.
func (f *fold) copyLeases(known *bbolt.Bucket) {
	f.w.bucket(leaseBucket)
	for _, id := range slices.Sorted(maps.Keys(f.leases)) {
		key := leaseKey(id)
		var value []byte
		switch ttl := f.granted[id]; {
		case ttl > 0:
			value = newLease(id, ttl)
		case known != nil:
			value = known.Get(key)
		}
		if value == nil {
			f.result.EndedLeases++
			value = newLease(id, EndedLeaseTTL)
		}
		f.w.put(key, value)
	}
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
func verify(snapshot *io.SectionReader) error {
	sum, stored := sha256.New(), make([]byte, sha256.Size)
	if snapshot.Size()%512 != sha256.Size {
		return fmt.Errorf("it is no snapshot: its %d bytes do not end with a SHA-256", snapshot.Size())
	}
	_, err := io.CopyN(sum, snapshot, snapshot.Size()-sha256.Size)
	if err == nil {
		_, err = io.ReadFull(snapshot, stored)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the snapshot: %w", err)
	case !bytes.Equal(sum.Sum(nil), stored):
		return errors.New("the snapshot is damaged: its SHA-256 is not the one at its end")
	}
	return nil
}

// seal appends the SHA-256 of a file to it.
func seal(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
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
