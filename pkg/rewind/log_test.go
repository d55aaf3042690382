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
	"slices"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// segments cuts the history from a revision on into segments of random length, which overlap
// now and then.
func (h *history) segments(rng *rand.Rand, from int64) (segments []*changelog.Segment) {
	revisions := map[int64]*changelog.Revision{}
	for _, key := range slices.Sorted(maps.Keys(h.records)) {
		r, _ := parseRecord([]byte(key))
		if r.main < from {
			continue
		}
		if revisions[r.main] == nil {
			revisions[r.main] = &changelog.Revision{Main: r.main, At: time.UnixMilli(r.main * 1000)}
		}
		revisions[r.main].Changes = append(revisions[r.main].Changes, changelog.Change{Tombstone: r.tombstone, KeyValue: []byte(h.records[key])})
	}
	covered := from
	for first := from; first <= h.span.Newest; {
		last := min(max(first+rng.Int64N(20)-1, covered), h.span.Newest)
		covered = last
		s := &changelog.Segment{Cluster: 7, First: first, Last: last, Until: time.UnixMilli(last*1000 + int64(len(segments)))}
		for at := first; at <= last; at++ {
			s.Revisions = append(s.Revisions, *revisions[at])
		}
		for id, ttl := range h.leases {
			s.Leases = append(s.Leases, changelog.Lease{ID: id, TTL: ttl})
		}
		segments = append(segments, s)
		if first = last + 1; rng.IntN(4) == 0 && last > from {
			first = last
		}
	}
	return segments
}

// withLog appends segments to a snapshot, and returns the size of the snapshot.
func withLog(t testing.TB, snapshot string, segments []*changelog.Segment) (file string, size int64) {
	t.Helper()
	text, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	size = int64(len(text))
	for _, s := range segments {
		part, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	file = filepath.Join(t.TempDir(), "with-log")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, size
}

// A snapshot of an earlier moment and the log after it give what a later snapshot gives.
func TestASnapshotWithALogHoldsWhatLivedLater(t *testing.T) {
	for seed := range uint64(40) {
		h := newHistory(t, seed, 20+int(seed)*10)
		rng := rand.New(rand.NewPCG(seed, 2))
		at := h.span.Oldest + rng.Int64N(h.span.Newest-h.span.Oldest+1)
		whole, base := h.snapshot(t), filepath.Join(t.TempDir(), "base")
		if _, err := To(whole, base, at); err != nil {
			t.Fatal(err)
		}
		begin := at + 1
		if at > h.span.Oldest && rng.IntN(2) == 0 {
			begin = at // the log may begin before the end of the snapshot
		}
		file, size := withLog(t, base, h.segments(rng, begin))
		for range 4 {
			revision := at + rng.Int64N(h.span.Newest-at+1)
			what := fmt.Sprintf("history %d at revision %d, from %d", seed, revision, at)
			direct, followed := filepath.Join(t.TempDir(), "direct"), filepath.Join(t.TempDir(), "followed")
			wantResult, err := To(whole, direct, revision)
			if err != nil {
				t.Fatal(err)
			}
			result, err := ToWithLog(file, size, followed, revision)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			want, got := contentOf(t, direct), contentOf(t, followed)
			for bucket := range want {
				if bucket == "lease" {
					if w, g := slices.Sorted(maps.Keys(want[bucket])), slices.Sorted(maps.Keys(got[bucket])); !slices.Equal(w, g) {
						t.Errorf("%s: %d leases, want %d", what, len(g), len(w))
					}
				} else if !maps.Equal(want[bucket], got[bucket]) {
					t.Errorf("%s: the bucket %s has %d entries, want %d, or other ones", what, bucket, len(got[bucket]), len(want[bucket]))
				}
			}
			for id, ttl := range h.leases {
				if there, ok := got["lease"][string(leaseKey(id))]; ok && revision > at && there != string(newLease(id, ttl)) {
					t.Errorf("%s: the lease %x has another time to live than %d", what, id, ttl)
				}
			}
			// The base has a record for each lease already.
			if result.Keys != wantResult.Keys || result.Leases != wantResult.Leases || result.EndedLeases > wantResult.EndedLeases {
				t.Errorf("%s: %+v, want %+v", what, result, wantResult)
			}
		}
	}
}

func TestALogThatDoesNotContinueTheSnapshotIsRefused(t *testing.T) {
	h := newHistory(t, 9, 300)
	rng := rand.New(rand.NewPCG(9, 9))
	at := (h.span.Oldest + h.span.Newest) / 2
	base := filepath.Join(t.TempDir(), "base")
	if _, err := To(h.snapshot(t), base, at); err != nil {
		t.Fatal(err)
	}
	segments := h.segments(rng, at+1)
	refused := func(what string, want error, segments []*changelog.Segment, spoil func([]byte)) {
		t.Helper()
		file, size := withLog(t, base, segments)
		if spoil != nil {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			spoil(text[size:])
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ToWithLog(file, size, filepath.Join(t.TempDir(), "target"), h.span.Newest); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range segments[:len(segments)-1] {
		if segments[i+1].First == segments[i].Last+1 && segments[i].Last >= segments[i].First && (i == 0 || segments[i-1].Last < segments[i].First) {
			refused(fmt.Sprintf("without segment %d", i), changelog.ErrGap, slices.Delete(slices.Clone(segments), i, i+1), nil)
		}
	}
	refused("without the end", changelog.ErrGap, slices.DeleteFunc(slices.Clone(segments), func(s *changelog.Segment) bool { return s.Last == h.span.Newest }), nil)
	refused("in another order", changelog.ErrGap, slices.Concat(segments[2:], segments[:2]), nil)
	for range 100 {
		refused("a flipped bit", changelog.ErrDamaged, segments, func(log []byte) { log[rng.IntN(len(log)-1000)] ^= 1 << rng.IntN(8) })
	}
	refused("zeros after it", changelog.ErrDamaged, segments[:1], func(log []byte) { copy(log, bytes.Repeat([]byte{0}, 8)) })
	file, size := withLog(t, base, segments)
	if _, err := ToWithLog(file, size, filepath.Join(t.TempDir(), "target"), h.span.Newest+1); !errors.Is(err, changelog.ErrGap) {
		t.Errorf("after the end of the log: %v", err)
	}
	var outside OutsideError
	if _, err := ToWithLog(file, size, filepath.Join(t.TempDir(), "target"), at-1); !errors.As(err, &outside) {
		t.Errorf("before the snapshot: %v", err)
	}
	if _, err := ToWithLog(file, size-512, filepath.Join(t.TempDir(), "target"), at); err == nil {
		t.Error("a wrong size was taken")
	}
}
