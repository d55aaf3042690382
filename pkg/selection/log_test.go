// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	first  = 0xaaaa // a cluster
	second = 0xbbbb // that took its place
)

var day = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

// moment is a number of seconds into the day.
func moment(seconds int) time.Time { return day.Add(time.Duration(seconds) * time.Second) }

// record puts a segment whose revision R was received at second R*10.
func (s *shelf) record(t *testing.T, cluster uint64, from, to, until int) *book {
	t.Helper()
	segment := &changelog.Segment{Cluster: cluster, First: int64(from), Last: int64(to), Until: moment(until)}
	for revision := from; revision <= to; revision++ {
		segment.Revisions = append(segment.Revisions, changelog.Revision{Main: int64(revision), At: moment(revision * 10), Changes: []changelog.Change{{KeyValue: fmt.Appendf(nil, "%d", revision)}}})
	}
	text, err := segment.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return s.put(changelog.KeyOf("a/etcd", segment), text)
}

// logged is a store with two backups of a cluster and its log from revision 10 on, with a gap,
// and a cluster that took its place.
func logged(t *testing.T) *shelf {
	t.Helper()
	s := newShelf()
	cluster := func(id uint64) []string { return []string{backupobject.MetaCluster, fmt.Sprintf("%016x", id)} }
	s.put(monday, holding(t, 4, 12), cluster(first)...)
	s.put(tuesday, holding(t, 15, 25), cluster(first)...)
	s.record(t, first, 11, 10, 100) // the log begins
	s.record(t, first, 11, 18, 185)
	s.record(t, first, 15, 20, 205) // another operator
	s.record(t, first, 21, 20, 260) // nothing came
	s.record(t, first, 21, 28, 289)
	s.record(t, first, 29, 33, 335)
	s.record(t, first, 41, 40, 400) // after a gap
	s.record(t, first, 41, 45, 455)
	s.put(sunday, holding(t, 1, 3), cluster(second)...)
	s.record(t, second, 3, 2, 500)
	s.record(t, second, 3, 2, 600)
	return s
}

func TestALogTakesABackupToARevision(t *testing.T) {
	for revision, want := range map[int64]struct {
		key, says string
		segments  []string
	}{
		8:  {key: monday},
		14: {key: monday, segments: []string{"11-18"}},
		19: {key: tuesday},
		25: {key: tuesday},
		26: {key: tuesday, segments: []string{"21-28"}},
		33: {key: tuesday, segments: []string{"21-28", "29-33"}},
		34: {says: "the nearest that can be restored: 33"},
		43: {says: "the nearest that can be restored: 33"}, // there is no backup after the gap
	} {
		s := logged(t)
		v, passed, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: revision}, nil)
		if v.Key != want.key || (err == nil) != (want.says == "") {
			t.Errorf("revision %d: %+v, %v, passed over %q", revision, v, err, passed)
			continue
		}
		if want.says != "" {
			if !errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), want.says) {
				t.Errorf("revision %d: %v", revision, err)
			}
			continue
		}
		checkParts(t, s, v, revision, want.segments)
	}
}

// checkParts checks that size and SHA-256 are those of the backup and the segments after it.
func checkParts(t *testing.T, s *shelf, v Verified, revision int64, want []string) {
	t.Helper()
	whole := slices.Clone(s.objects[v.Key].content)
	size := int64(0)
	if len(want) > 0 {
		size = int64(len(whole))
		objects, err := Segments(t.Context(), s.location("a/etcd"), v.ClusterID, v.EtcdRevision, v.Revision)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range objects {
			k, _ := changelog.ParseKey("a/etcd", o.Key)
			got = append(got, fmt.Sprintf("%d-%d", k.First, k.Last))
			whole = append(whole, s.objects[o.Key].content...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("revision %d: segments %v, want %v", revision, got, want)
		}
	}
	sum := sha256.Sum256(whole)
	if v.Revision != revision || v.SnapshotSize != size || v.Size != int64(len(whole)) || v.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("revision %d: %+v, want %d bytes with a snapshot of %d", revision, v, len(whole), size)
	}
}

func TestAMomentHasItsRevision(t *testing.T) {
	for second, want := range map[int]struct {
		revision int64
		key      string
		says     string
	}{
		99:  {says: "does not contain the moment 2026-07-01T00:01:39Z; it contains 2026-07-01T00:01:40Z to 2026-07-01T00:05:35Z, 2026-07-01T00:06:40Z to"},
		100: {revision: 10, key: monday},
		109: {revision: 10, key: monday},
		110: {revision: 11, key: monday},
		119: {revision: 11, key: monday},
		204: {revision: 20, key: tuesday},
		209: {revision: 20, key: tuesday},
		219: {revision: 21, key: tuesday},
		285: {revision: 28, key: tuesday},
		334: {revision: 33, key: tuesday},
		336: {says: "does not contain the moment"}, // in the gap
		430: {says: "none of the"},                 // no backup after the gap
		550: {revision: 2, key: sunday},            // the cluster that took its place
		601: {says: "does not contain the moment"},
	} {
		s := logged(t)
		spec := &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}
		v, passed, err := Find(t.Context(), s.location("a/etcd"), spec, nil)
		if v.Key != want.key || v.Revision != want.revision || (err == nil) != (want.says == "") || err != nil && !strings.Contains(err.Error(), want.says) {
			t.Errorf("second %d: revision %d of %s, %v, passed over %q", second, v.Revision, v.Key, err, passed)
		}
	}
	_, _, err := Find(t.Context(), newShelf().location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: day}}, nil)
	if !errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), "spec.continuous") {
		t.Errorf("without a log: %v", err)
	}
}

// While a log catches up, its segments show no more than the one before them.
func TestAMomentOfALogThatCatchesUpHasItsRevision(t *testing.T) {
	s := newShelf()
	s.put(monday, holding(t, 4, 12), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
	s.record(t, first, 11, 10, 100)
	s.record(t, first, 11, 18, 185)
	s.record(t, first, 19, 22, 185)
	s.record(t, first, 23, 26, 185)
	s.record(t, first, 27, 30, 305)
	for second, want := range map[int]int64{184: 18, 189: 18, 195: 19, 225: 22, 235: 23, 265: 26, 300: 30} {
		v, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}, nil)
		if err != nil || v.Revision != want {
			t.Errorf("second %d: revision %d, %v; want %d", second, v.Revision, err, want)
		}
	}
}

// recordLate puts a segment whose revisions were all received at one second: nobody recorded before.
func (s *shelf) recordLate(t *testing.T, from, to, at, until int) {
	t.Helper()
	segment := &changelog.Segment{Cluster: first, First: int64(from), Last: int64(to), Until: moment(until)}
	for revision := from; revision <= to; revision++ {
		segment.Revisions = append(segment.Revisions, changelog.Revision{Main: int64(revision), At: moment(at), Changes: []changelog.Change{{KeyValue: fmt.Appendf(nil, "%d", revision)}}})
	}
	text, err := segment.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s.put(changelog.KeyOf("a/etcd", segment), text)
}

// What etcd wrote while nobody recorded has the moment at which somebody recorded again.
func TestAMomentWithoutARecordingIsRefused(t *testing.T) {
	const refused = "from 2026-07-01T00:03:05Z to 2026-07-01T00:53:05Z: nobody knows which of the revisions 19 to 30 etcd had at "
	for name, tc := range map[string]struct {
		record func(*shelf)
		want   map[int]int64 // 0: refused
		says   string
	}{
		"at once": {func(s *shelf) { s.recordLate(t, 19, 30, 3185, 3186) },
			map[int]int64{185: 18, 186: 0, 3000: 0, 3184: 0, 3185: 30, 3186: 30}, refused},
		"while it was asked": {func(s *shelf) { s.recordLate(t, 19, 30, 3185, 3180); s.recordLate(t, 31, 30, 0, 3240) },
			map[int]int64{185: 18, 3000: 0, 3182: 0, 3185: 30, 3240: 30}, refused},
		"in parts": {func(s *shelf) {
			s.recordLate(t, 19, 22, 3000, 185)
			s.recordLate(t, 23, 26, 3005, 185)
			s.recordLate(t, 27, 30, 3185, 3186)
		}, map[int]int64{184: 18, 1000: 0, 3003: 0, 3100: 0, 3185: 30}, refused},
		"and nothing was written": {func(s *shelf) { s.recordLate(t, 19, 18, 0, 3180); s.recordLate(t, 19, 30, 3185, 3186) },
			map[int]int64{1000: 18, 3180: 18, 3184: 18, 3185: 30}, ""},
		"and more comes later": {func(s *shelf) { s.recordLate(t, 19, 30, 3185, 3186); s.recordLate(t, 31, 31, 3190, 3191) },
			map[int]int64{3000: 0, 3189: 30, 3190: 31}, refused},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.put(monday, holding(t, 4, 12), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
			s.record(t, first, 11, 10, 100)
			s.record(t, first, 11, 18, 185)
			tc.record(s)
			for second, want := range tc.want {
				v, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}, nil)
				switch {
				case want > 0 && (err != nil || v.Revision != want):
					t.Errorf("second %d: revision %d, %v; want %d", second, v.Revision, err, want)
				case want == 0 && (!errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), tc.says+text(moment(second))+": set spec.revision instead of spec.time")):
					t.Errorf("second %d: revision %d, %v", second, v.Revision, err)
				}
			}
			v, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: 24}, nil)
			if err != nil || v.Revision != 24 {
				t.Errorf("revision 24: %+v, %v", v, err)
			}
		})
	}
}

// The store stood still for minutes, while the recorder received the changes as they came.
func TestAMomentBeforeALateSegmentHasItsRevision(t *testing.T) {
	s := newShelf()
	s.put(monday, holding(t, 4, 12), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
	s.record(t, first, 11, 10, 100)
	s.record(t, first, 11, 60, 605)
	for second, want := range map[int]int64{105: 10, 300: 30, 599: 59, 605: 60} {
		v, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}, nil)
		if err != nil || v.Revision != want {
			t.Errorf("second %d: revision %d, %v; want %d", second, v.Revision, err, want)
		}
	}
}

// A change came before the log was a moment old, so that no segment says that nothing has changed yet.
func TestALogBeginsWhenItsFirstSegmentWasAsked(t *testing.T) {
	for name, tc := range map[string]struct {
		tail *changelog.Tail
		want int64 // of the moments before the first change; 0: they are refused
	}{
		"the log begins with it":        {changelog.NewTail(first, 12), 12},
		"what was before it is deleted": {changelog.NewTail(first, 4), 0},
		"nobody knows":                  {nil, 0},
	} {
		s := newShelf()
		s.put(monday, holding(t, 4, 12), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
		segment := &changelog.Segment{Cluster: first, First: 13, Last: 13, Until: moment(125), Revisions: []changelog.Revision{
			{Main: 13, At: moment(130), Changes: []changelog.Change{{KeyValue: []byte("13")}}},
		}}
		if tc.tail != nil {
			tc.tail.Tie(segment)
		}
		text, err := segment.Encode()
		if err != nil {
			t.Fatal(err)
		}
		s.put(changelog.KeyOf("a/etcd", segment), text)
		s.record(t, first, 14, 13, 200)
		for second, want := range map[int]int64{124: 0, 125: tc.want, 129: tc.want, 130: 13, 199: 13} {
			v, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(second)}}, nil)
			if v.Revision != want || (err == nil) != (want > 0) || want == 0 && !errors.Is(err, ErrOutside) {
				t.Errorf("%s, second %d: revision %d, %v; want %d", name, second, v.Revision, err, want)
			}
		}
	}
}

func TestADamagedLogIsRefused(t *testing.T) {
	for what, spoil := range map[string]func(*shelf, *book){
		"a flipped bit":     func(_ *shelf, b *book) { b.content[len(b.content)/2] ^= 1 },
		"another one":       func(s *shelf, b *book) { b.content = s.record(t, first, 21, 27, 289).content },
		"another cluster's": func(s *shelf, b *book) { b.content = s.record(t, second, 21, 28, 289).content },
		"cut off":           func(_ *shelf, b *book) { b.content = b.content[:len(b.content)-5] },
	} {
		s := logged(t)
		b := s.record(t, first, 21, 28, 289)
		spoil(s, b)
		b.Size = int64(len(b.content))
		delete(s.objects, monday) // which another segment takes there
		_, passed, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: 28}, nil)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, passed over %q", what, err, passed)
		}
	}
	s := logged(t)
	for key := range s.objects {
		if k, ours := changelog.ParseKey("a/etcd", key); ours && k.First == 21 && k.Last == 28 {
			delete(s.objects, key)
		}
	}
	if _, _, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: 28}, nil); !errors.Is(err, ErrOutside) {
		t.Errorf("without a segment: %v", err)
	}
}

// spoiled makes the first segment of a cluster's log from a revision on unreadable, and removes what says that
// nothing had changed before it.
func (s *shelf) spoiled(from int64, cluster uint64, spoil func(*book)) *shelf {
	for key, b := range s.objects {
		k, ours := changelog.ParseKey("a/etcd", key)
		switch {
		case !ours || k.Cluster != cluster || k.First != from:
		case k.Last < k.First:
			delete(s.objects, key)
		default:
			spoil(b)
		}
	}
	return s
}

// unreadable are what can be wrong with a segment of long ago.
var unreadable = map[string]struct {
	spoil func(*book)
	err   error
}{
	"damaged": {func(b *book) { b.content[len(b.content)/2] ^= 1 }, ErrDamaged},
	"archived": {func(b *book) {
		b.faults = slices.Repeat([]fault{{err: fmt.Errorf("archived: %w", store.ErrDenied)}}, 10)
	}, store.ErrDenied},
}

// A lifecycle rule has archived it, its key is disabled, or it is damaged: that must not end a restore that
// does not need it.
func TestAMomentDoesNotNeedTheBeginOfALog(t *testing.T) {
	for what, u := range unreadable {
		for second, want := range map[int]struct {
			revision int64 // 0: the moment needs what is unreadable
			key      string
		}{
			150: {},
			184: {},
			209: {20, tuesday},
			285: {28, tuesday},
			336: {},          // in the gap
			550: {2, sunday}, // of the cluster that took its place
		} {
			s := logged(t).spoiled(11, first, u.spoil)
			v, passed, err := Find(t.Context(), s.location("a/etcd"), momentSpec(second), nil)
			switch {
			case want.revision > 0 && (err != nil || v.Key != want.key || v.Revision != want.revision):
				t.Errorf("%s, second %d: revision %d of %s, %v, passed over %q", what, second, v.Revision, v.Key, err, passed)
			case second == 336 && (!errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), "it contains 2026-07-01T00:03:05Z to 2026-07-01T00:05:35Z")):
				t.Errorf("%s, in the gap: %v", what, err)
			case want.revision == 0 && second != 336 && !errors.Is(err, u.err):
				t.Errorf("%s, second %d: revision %d of %s, %v", what, second, v.Revision, v.Key, err)
			}
		}
	}
}

// A later piece of the same log begins after the moment, whatever it holds.
func TestAMomentDoesNotNeedWhatFollowsAGap(t *testing.T) {
	for what, u := range unreadable {
		s := logged(t).spoiled(41, first, u.spoil)
		v, passed, err := Find(t.Context(), s.location("a/etcd"), momentSpec(285), nil)
		if err != nil || v.Revision != 28 || v.Key != tuesday {
			t.Errorf("%s: revision %d of %s, %v, passed over %q", what, v.Revision, v.Key, err, passed)
		}
	}
}

// Of two logs that contain a moment, a restore takes the one that ends later. If nobody knows whether that
// one does, somebody has to say which one is meant.
func TestALogThatMayContainTheMomentIsNamed(t *testing.T) {
	for what, u := range unreadable {
		s := logged(t).spoiled(3, second, func(*book) {})
		s.record(t, second, 51, 55, 600)
		s.spoiled(51, second, u.spoil)
		_, _, err := Find(t.Context(), s.location("a/etcd"), momentSpec(285), nil)
		if !errors.Is(err, u.err) || !strings.Contains(err.Error(), "set spec.clusterID: 000000000000aaaa") {
			t.Errorf("%s, and it ends later: %v", what, err)
		}
		spec := momentSpec(285)
		spec.ClusterID = "aaaa"
		v, passed, err := Find(t.Context(), s.location("a/etcd"), spec, nil)
		if err != nil || v.Revision != 28 || v.Key != tuesday {
			t.Errorf("%s, with the cluster: revision %d of %s, %v, passed over %q", what, v.Revision, v.Key, err, passed)
		}

		s = logged(t).spoiled(11, first, u.spoil)
		s.record(t, second, 3, 2, 100)
		v, passed, err = Find(t.Context(), s.location("a/etcd"), momentSpec(150), nil)
		if err != nil || v.Key != sunday || !strings.Contains(fmt.Sprint(passed), "may contain the moment 2026-07-01T00:02:30Z too: to restore that one, set spec.clusterID: 000000000000aaaa") {
			t.Errorf("%s, and it ends earlier: %s, %v, passed over %q", what, v.Key, err, passed)
		}
	}
}

// Users and roles are those of the backup. One that began after the moment may still hold the
// revision, and has what somebody has changed since.
func TestAMomentIsRestoredFromABackupBeforeIt(t *testing.T) {
	const later = "a/etcd_v33_2026-07-01-00:05:30"
	for what, tc := range map[string]struct {
		meddle func(*shelf)
		want   string
	}{
		"as ever": {func(*shelf) {}, tuesday},
		"it is damaged": {func(s *shelf) {
			s.objects[tuesday].content[9000] ^= 1
			delete(s.objects, monday)
		}, later},
		"it is deleted": {func(s *shelf) {
			delete(s.objects, tuesday)
			delete(s.objects, monday)
		}, later},
	} {
		s := logged(t)
		b := s.put(later, holding(t, 15, 33), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
		b.Modified = moment(331)
		tc.meddle(s)
		v, passed, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &metav1.Time{Time: moment(285)}}, nil)
		if err != nil || v.Key != tc.want || v.Revision != 28 {
			t.Errorf("%s: revision %d of %s, %v, passed over %q", what, v.Revision, v.Key, err, passed)
		}
	}
}
