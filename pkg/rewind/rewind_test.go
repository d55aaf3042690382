// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestASnapshotAtEachRevisionHoldsWhatLivedThen(t *testing.T) {
	for seed := range uint64(40) {
		h := newHistory(t, seed, int(seed)*10)
		snapshot := h.snapshot(t)
		before := contentOf(t, snapshot)
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, revision := range []int64{
			h.span.Oldest, h.span.Newest, h.span.Oldest + rng.Int64N(h.span.Newest-h.span.Oldest+1), h.span.Oldest + rng.Int64N(h.span.Newest-h.span.Oldest+1),
		} {
			what := fmt.Sprintf("history %d at revision %d of %s", seed, revision, h.span)
			target := filepath.Join(t.TempDir(), "target")
			result, err := To(snapshot, target, revision)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			want := maps.Clone(before)
			want["key"], want["lease"], want["meta"] = map[string]string{}, map[string]string{}, maps.Clone(before["meta"])
			want["meta"]["scheduledCompactRev"], want["meta"]["finishedCompactRev"] = string(compactionAt(revision)), string(compactionAt(revision))
			ended := 0
			for _, there := range h.truth[revision] {
				want["key"][there.record] = encoded(t, there.kv)
				if id := there.kv.Lease; id != 0 {
					key := string(leaseKey(id))
					record, goesOn := before["lease"][key]
					if !goesOn {
						record = string(newLease(id, EndedLeaseTTL))
						if _, known := want["lease"][key]; !known {
							ended++
						}
					}
					want["lease"][key] = record
				}
			}
			for key, value := range h.records {
				if r, _ := parseRecord([]byte(key)); r.main == revision && r.tombstone {
					want["key"][key] = value
				}
			}
			got := contentOf(t, target)
			for bucket := range want {
				if !maps.Equal(got[bucket], want[bucket]) {
					t.Errorf("%s: the bucket %s has %d entries, want %d, or other ones", what, bucket, len(got[bucket]), len(want[bucket]))
				}
			}
			if len(got) != len(want) || result != (Result{Keys: len(h.truth[revision]), Leases: len(want["lease"]), EndedLeases: ended}) {
				t.Errorf("%s: %d buckets, and the result %+v", what, len(got), result)
			}
			file, err := os.Open(target)
			if err != nil {
				t.Fatal(err)
			}
			if span, err := ReadSpan(file); err != nil || span != (Span{revision, revision}) {
				t.Errorf("%s: the span is %+v, %v", what, span, err)
			}
			file.Close()
		}
	}
}

func TestOtherRevisionsAreRefusedWithThosePossible(t *testing.T) {
	h := newHistory(t, 3, 400)
	snapshot := h.snapshot(t)
	for revision, says := range map[int64]string{
		h.span.Oldest - 1: fmt.Sprintf("does not hold revision %d any more: etcd had compacted its history up to %d; it holds the revisions %d to %d", h.span.Oldest-1, h.span.Oldest, h.span.Oldest, h.span.Newest),
		h.span.Newest + 1: fmt.Sprintf("does not hold revision %d yet: it holds the revisions %d to %d", h.span.Newest+1, h.span.Oldest, h.span.Newest),
	} {
		target := filepath.Join(t.TempDir(), "target")
		_, err := To(snapshot, target, revision)
		var outside OutsideError
		if !errors.As(err, &outside) || outside.Span != h.span || !strings.Contains(err.Error(), says) {
			t.Errorf("revision %d: %v", revision, err)
		}
		if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("there is a target: %v", err)
		}
	}
}

// One bit is wrong, wherever it is.
func TestADamagedSnapshotIsRefused(t *testing.T) {
	h := newHistory(t, 5, 200)
	snapshot := h.snapshot(t)
	text, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		broken := bytes.Clone(text)
		at := rng.IntN(len(text))
		broken[at] ^= 1 << rng.IntN(8)
		if err := os.WriteFile(snapshot, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := To(snapshot, filepath.Join(t.TempDir(), "target"), h.span.Newest); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("a flipped bit in byte %d: %v", at, err)
		}
	}
	if err := os.WriteFile(snapshot, text[:len(text)-512], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := To(snapshot, filepath.Join(t.TempDir(), "target"), h.span.Newest); err == nil {
		t.Error("a cut file is accepted")
	}
}

// The SHA-256 is right, and the content is not: it was damaged before the backup.
func TestAHistoryWithAHoleIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(h *history, key string)
		says  string
	}{
		"a record is missing":   {func(h *history, key string) { delete(h.records, key) }, "lacks records between"},
		"a record has no value": {func(h *history, key string) { h.records[key] = "\xff" }, "is no KeyValue of etcd"},
		"a key is none":         {func(h *history, key string) { h.records[key[:12]] = h.records[key] }, "is no key of a record"},
	} {
		h := newHistory(t, 9, 300)
		r := (h.span.Oldest + h.span.Newest) / 2
		key := recordKey(r, 0, false)
		if _, put := h.records[key]; !put {
			key = recordKey(r, 0, true)
		}
		tc.spoil(h, key)
		if _, err := To(h.snapshot(t), filepath.Join(t.TempDir(), "target"), h.span.Newest); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page refers to another one that does not exist, with a right SHA-256.
func TestADatabaseThatContradictsItselfIsAnError(t *testing.T) {
	h := newHistory(t, 11, 400)
	snapshot := h.snapshot(t)
	text, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 11))
	failed := 0
	for range 60 {
		broken := bytes.Clone(text[:len(text)-32])
		page := 2 + rng.IntN(len(broken)/4096-2)
		for range 20 {
			broken[page*4096+rng.IntN(256)] = byte(rng.Uint32())
		}
		if err := os.WriteFile(snapshot, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		sealed(t, snapshot)
		if _, err := To(snapshot, filepath.Join(t.TempDir(), "target"), h.span.Newest); err != nil {
			failed++ // pages that nothing refers to do not matter
		}
	}
	if failed == 0 {
		t.Error("nothing was ever found wrong")
	}
}

func TestAnExistingTargetStays(t *testing.T) {
	h := newHistory(t, 1, 50)
	snapshot := h.snapshot(t)
	if _, err := To(snapshot, snapshot, h.span.Newest); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("%v", err)
	}
	contentOf(t, snapshot) // it is still one
}

// The disk is full.
func TestAWriteErrorIsReported(t *testing.T) {
	h := newHistory(t, 1, 50)
	if _, err := To(h.snapshot(t), filepath.Join(t.TempDir(), "absent", "target"), h.span.Newest); err == nil || !strings.Contains(err.Error(), "make a file") {
		t.Errorf("%v", err)
	}
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{db: db}
	w.bucket([]byte("b"))
	w.put([]byte("k"), []byte("v"))
	w.put(nil, []byte("v"))
	w.put([]byte("l"), []byte("v"))
	if err := w.end(); err == nil {
		t.Error("a refused key is no error")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
