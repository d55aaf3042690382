// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// hashAt is etcd's HashKV at a revision, with a compaction.
func (h *history) hashAt(revision, compacted int64) *changelog.Checkpoint {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	sum.Write([]byte("key"))
	live := map[string]bool{}
	for _, there := range h.truth[revision] {
		live[there.record] = true
	}
	for _, key := range slices.Sorted(maps.Keys(h.records)) {
		if r, _ := parseRecord([]byte(key)); r.main <= revision && (r.main > compacted || live[key]) {
			sum.Write([]byte(key + h.records[key]))
		}
	}
	return &changelog.Checkpoint{Revision: revision, Compacted: compacted, Hash: sum.Sum32()}
}

// chaptered is a history with the snapshot of an earlier revision, and the segments after it.
func chaptered(t *testing.T, seed uint64) (h *history, rng *rand.Rand, base string, at int64, segments []*changelog.Segment) {
	t.Helper()
	h, rng = newHistory(t, seed, 200), rand.New(rand.NewPCG(seed, 3))
	at = h.span.Oldest + rng.Int64N(max(1, (h.span.Newest-h.span.Oldest)/2))
	base = filepath.Join(t.TempDir(), "base")
	if _, err := To(h.snapshot(t), base, at); err != nil {
		t.Fatal(err)
	}
	return h, rng, base, at, h.segments(rng, at+1)
}

func TestTheHashOfEtcdIsVerified(t *testing.T) {
	for seed := range uint64(20) {
		h, rng, base, at, segments := chaptered(t, 500+seed)
		n := 0
		for _, s := range segments {
			if s.Last > at && rng.IntN(2) == 0 {
				revision := max(at, s.Last-rng.Int64N(30))
				s.Checkpoint = h.hashAt(revision, at+rng.Int64N(revision-at+1))
				n++
			}
		}
		file, size := withLog(t, base, segments)
		for revision := at + 1; revision <= h.span.Newest; revision += 1 + rng.Int64N(10) {
			result, err := ToWithLog(file, size, filepath.Join(t.TempDir(), "target"), revision)
			if err != nil {
				t.Fatalf("history %d at revision %d, with %d hashes: %v", seed, revision, n, err)
			}
			want := int64(0)
			for i, s := range segments {
				if c := s.Checkpoint; c != nil && c.Revision <= revision && (i == 0 || segments[i-1].Last < revision) && len(h.truth[c.Revision]) > 0 {
					want = max(want, c.Revision)
				}
			}
			if result.Checkpoint != want {
				t.Errorf("history %d at revision %d: the hash of %d was verified, want %d", seed, revision, result.Checkpoint, want)
			}
		}
	}
}

// Each revision is there, so nothing else shows it.
func TestALostChangeWithinARevisionIsRefused(t *testing.T) {
	found := 0
	for seed := range uint64(20) {
		h, rng, base, at, segments := chaptered(t, 600+seed)
		for _, s := range segments {
			// The segments share revisions where they overlap.
			for i := range s.Revisions {
				s.Revisions[i].Changes = slices.Clone(s.Revisions[i].Changes)
			}
		}
		end := slices.IndexFunc(segments, func(s *changelog.Segment) bool { return s.Last == h.span.Newest })
		segments[end].Checkpoint = h.hashAt(h.span.Newest, at)
		lost := at + 1 + rng.Int64N(h.span.Newest-at)
		spoiled := false
		for _, s := range segments {
			for i := range s.Revisions {
				if r := &s.Revisions[i]; r.Main == lost && len(r.Changes) > 1 {
					r.Changes, spoiled = r.Changes[:len(r.Changes)-1], true
				}
			}
		}
		file, size := withLog(t, base, segments)
		_, err := ToWithLog(file, size, filepath.Join(t.TempDir(), "target"), h.span.Newest)
		if errors.Is(err, ErrHash) != spoiled || !spoiled && err != nil {
			t.Errorf("history %d without a change of revision %d: %v", seed, lost, err)
		}
		if spoiled {
			found++
		}
	}
	if found == 0 {
		t.Error("no revision had two changes")
	}
}

// The member that was asked had not compacted yet what the snapshot lacks.
func TestAHashThatCountsMoreThanTheSnapshotHasIsPassedOver(t *testing.T) {
	h, _, base, at, segments := chaptered(t, 700)
	for i, revision := range []int64{at - 1, at, h.span.Newest} {
		c := h.hashAt(max(revision, at), at)
		c.Revision, c.Compacted, c.Hash = revision, at-1, c.Hash+1
		segments[len(segments)-1].Checkpoint = c
		file, size := withLog(t, base, segments)
		result, err := ToWithLog(file, size, filepath.Join(t.TempDir(), fmt.Sprint(i)), h.span.Newest)
		if err != nil || result.Checkpoint != 0 {
			t.Errorf("a hash at revision %d: %+v, %v", revision, result, err)
		}
	}
}
