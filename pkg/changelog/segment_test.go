// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package changelog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var began = time.UnixMilli(1_790_000_000_000).UTC()

func randomSegment(seed uint64, first int64, revisions int) *Segment {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &Segment{Cluster: 0xfeedfacecafebeef, First: first, Last: first + int64(revisions) - 1}
	at := began.Add(time.Duration(first) * time.Second)
	for i := range revisions {
		at = at.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
		r := Revision{Main: first + int64(i), At: at}
		for range 1 + rng.IntN(4) {
			text := make([]byte, rng.IntN(300))
			for j := range text {
				text[j] = byte(rng.Uint32())
			}
			r.Changes = append(r.Changes, Change{Tombstone: rng.IntN(3) == 0, KeyValue: text})
		}
		s.Revisions = append(s.Revisions, r)
	}
	for range rng.IntN(3) {
		s.Leases = append(s.Leases, Lease{ID: int64(rng.Uint64()), TTL: 1 + rng.Int64N(1000)})
	}
	s.Until = at
	if first > 1 && rng.IntN(2) == 0 {
		s.Checkpoint = &Checkpoint{Revision: s.Last, Compacted: rng.Int64N(s.Last), Hash: rng.Uint32()}
	}
	return s
}

func encoded(t *testing.T, s *Segment) []byte {
	t.Helper()
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestASegmentIsReadAsItWasWritten(t *testing.T) {
	var all bytes.Buffer
	var segments []*Segment
	for seed := range uint64(30) {
		s := randomSegment(seed, 1+int64(seed)*1000, int(seed)*7)
		text := encoded(t, s)
		got, err := Decode(text)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("segment %d came back as another: %v", seed, err)
		}
		segments = append(segments, s)
		all.Write(text)
	}
	heads := bytes.NewReader(all.Bytes())
	for i, want := range segments {
		head, err := ReadHead(heads)
		if err != nil || head.First != want.First || head.Last != want.Last || !reflect.DeepEqual(head.Checkpoint, want.Checkpoint) {
			t.Fatalf("the head of segment %d is %+v: %v", i, head, err)
		}
		got, err := Read(&all)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("segment %d of several came back as another: %v", i, err)
		}
	}
	if _, err := Read(&all); !errors.Is(err, io.EOF) {
		t.Errorf("after the last one: %v", err)
	}
}

func TestADamagedSegmentIsRefused(t *testing.T) {
	text := encoded(t, randomSegment(7, 1, 40))
	rng := rand.New(rand.NewPCG(7, 7))
	refused := func(what string, broken []byte) {
		t.Helper()
		for name, read := range map[string]func() (*Segment, error){
			"Decode": func() (*Segment, error) { return Decode(broken) },
			"Read":   func() (*Segment, error) { return Read(bytes.NewReader(broken)) },
		} {
			if _, err := read(); !errors.Is(err, ErrDamaged) && (len(broken) > 0 || name == "Decode") {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
	for range 2000 {
		broken := bytes.Clone(text)
		at := rng.IntN(len(text))
		broken[at] ^= 1 << rng.IntN(8)
		refused(fmt.Sprintf("a flipped bit in byte %d", at), broken)
	}
	for length := range text {
		refused(fmt.Sprintf("%d bytes of %d", length, len(text)), text[:length])
	}
}

// The SHA-256 fits, and the content is wrong.
func TestASegmentThatContradictsItselfIsRefused(t *testing.T) {
	for what, spoil := range map[string]func(*Segment){
		"holds 39":        func(s *Segment) { s.Revisions = s.Revisions[:39] },
		"changes nothing": func(s *Segment) { s.Revisions[4].Changes = nil },
		"and the one before it": func(s *Segment) {
			s.Revisions[4].At, s.Revisions[3].At = s.Revisions[3].At.Add(-time.Hour), s.Revisions[4].At
		},
		"revision 5 stands where": func(s *Segment) { s.Revisions[3].Main++ },
		"a hash of revision 41":   func(s *Segment) { s.Checkpoint = &Checkpoint{Revision: 41} },
		"no cluster":              func(s *Segment) { s.Cluster = 0 },
		"0 to 39":                 func(s *Segment) { s.First, s.Last = 0, 39 },
	} {
		s := randomSegment(1, 1, 40)
		spoil(s)
		if _, err := s.Encode(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
}

func TestKeysSayWhatASegmentHolds(t *testing.T) {
	s := randomSegment(3, 41, 12)
	key := KeyOf("prod/etcd", s)
	if want := fmt.Sprintf("prod/etcd_log/feedfacecafebeef/%019d-%019d-%013d", 41, 52, s.Until.UnixMilli()); key != want {
		t.Errorf("the key is %s, want %s", key, want)
	}
	k, ours := ParseKey("prod/etcd", key)
	if !ours || k.Text != key || !k.Fits(s) {
		t.Errorf("read as %+v, %v", k, ours)
	}
	if other := randomSegment(3, 42, 12); k.Fits(other) {
		t.Error("it fits another segment")
	}
	for _, other := range []string{"prod/etcd2_log" + key[len("prod/etcd_log"):], key + "0", key + ".part", strings.Replace(key, "0041-", "0000-", 1), "prod/etcd_log/x", strings.Replace(key, "0041-", "0054-", 1)} {
		if _, ours := ParseKey("prod/etcd", other); ours {
			t.Errorf("%s is taken for ours", other)
		}
	}
}

func TestPrefixesAreOfKeysBetweenRevisions(t *testing.T) {
	const from, to = 123_456, 234_567
	prefixes := Prefixes("etcd", 0xabc, from, to)
	for _, first := range []int64{1, 99_999, 112_345, from, from + 1, 129_999, 130_000, 200_000, to - 1, to, 245_000, 1_234_560} {
		found := 0
		for _, p := range prefixes {
			if strings.HasPrefix(KeyOf("etcd", &Segment{Cluster: 0xabc, First: first, Last: first + 5, Until: began}), p) {
				found++
			}
		}
		if between := first >= from && first <= to; between && found != 1 || found > 1 || found == 1 && (first < from-10_000 || first > to+10_000) {
			t.Errorf("%d prefixes are of revision %d", found, first)
		}
	}
	if len(prefixes) != 12 || len(Prefixes("etcd", 1, -5, 3)) != 1 {
		t.Errorf("prefixes %q", prefixes)
	}
}

func keysOf(segments ...*Segment) (keys []Key) {
	for _, s := range segments {
		k, _ := ParseKey("x", KeyOf("x", s))
		keys = append(keys, k)
	}
	return keys
}

// span is a segment of revisions.
func span(first, last int64, until int) *Segment {
	s := randomSegment(uint64(first), first, int(last-first+1))
	s.Until = began.Add(time.Duration(until) * time.Second)
	return s
}

func TestAChainEndsBeforeAGap(t *testing.T) {
	keys := keysOf(span(30, 40, 9), span(1, 10, 1), span(11, 10, 2), span(11, 10, 3), span(11, 20, 4), span(15, 25, 5), span(21, 20, 5), span(12, 18, 5), span(26, 25, 6))
	names := func(from int64) string {
		var list []string
		for _, k := range Chain(keys, from) {
			list = append(list, fmt.Sprintf("%d-%d", k.First, k.Last))
		}
		return strings.Join(list, " ")
	}
	for from, want := range map[int64]string{
		0:  "1-10 11-20 15-25 26-25",
		5:  "1-10 11-20 15-25 26-25",
		10: "11-20 15-25 26-25", // 1-10 holds nothing that comes after 10
		25: "26-25",
		28: "",
		29: "30-40",
	} {
		if got := names(from); got != want {
			t.Errorf("from %d: %s, want %s", from, got, want)
		}
	}
	// Only the newest of several that say that nothing came.
	idle := Chain(keysOf(span(1, 10, 1), span(11, 10, 2), span(11, 10, 3)), 5)
	if len(idle) != 2 || !idle[1].Until.Equal(began.Add(3*time.Second)) {
		t.Errorf("without changes: %+v", idle)
	}
}

func TestAReplayTakesEachRevisionOnce(t *testing.T) {
	whole := randomSegment(5, 1, 60)
	part := func(first, last int64) *Segment {
		s := *whole
		s.Checkpoint = nil
		s.First, s.Last = first, last
		s.Revisions = append([]Revision(nil), whole.Revisions[first-1:last]...)
		s.Until = began.Add(time.Duration(last) * time.Hour)
		return &s
	}
	r := Replay{Last: 7}
	var got []Revision
	again := part(30, 40)
	again.Until = again.Until.Add(time.Millisecond)
	for _, s := range []*Segment{part(1, 10), part(11, 20), part(15, 40), again, part(41, 60)} {
		fresh, err := r.Add(s)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fresh...)
	}
	if !reflect.DeepEqual(got, whole.Revisions[7:]) || r.Last != 60 || !r.Until.Equal(began.Add(60*time.Hour)) || r.Cluster != whole.Cluster {
		t.Errorf("%d revisions, %+v", len(got), r)
	}
	if _, err := r.Add(&Segment{Cluster: whole.Cluster, First: 62, Last: 61, Until: began}); !errors.Is(err, ErrGap) {
		t.Errorf("a gap: %v", err)
	}
	other := part(55, 60)
	other.Revisions[5].Changes = append([]Change{{KeyValue: []byte("other")}}, other.Revisions[5].Changes...)
	if _, err := r.Add(other); !errors.Is(err, ErrDamaged) {
		t.Errorf("another history: %v", err)
	}
	if _, err := r.Add(&Segment{Cluster: 1, First: 61, Last: 60}); !errors.Is(err, ErrDamaged) {
		t.Errorf("another cluster: %v", err)
	}
}

// cut makes segments of a history, which end with some revisions.
func cut(t *testing.T, tail *Tail, whole *Segment, first int64, ends ...int64) (segments []*Segment) {
	t.Helper()
	for _, last := range ends {
		s := *whole
		s.Checkpoint = nil
		s.First, s.Last = first, last
		s.Revisions = append([]Revision(nil), whole.Revisions[first-1:last]...)
		s.Until = began.Add(time.Duration(last) * time.Hour)
		if tail != nil {
			tail.Tie(&s)
		}
		text := encoded(t, &s)
		if tail != nil {
			tail.Stored(&s)
		}
		read, err := Decode(text)
		if err != nil || !reflect.DeepEqual(read, &s) {
			t.Fatalf("the segment of %d to %d came back as another: %v", first, last, err)
		}
		segments = append(segments, read)
		first = last + 1
	}
	return segments
}

// Operators before and after this one know no trails, and their logs continue.
func TestTrailsBeginAndEndWithinALog(t *testing.T) {
	whole := randomSegment(5, 1, 100)
	old := cut(t, nil, whole, 1, 10, 20)
	first := cut(t, TailOf(old[1]), whole, 21, 30, 40)
	back := cut(t, nil, whole, 41, 50)
	second := cut(t, TailOf(back[0]), whole, 51, 60, 70)
	// Another writer continues a segment before the last one.
	third := cut(t, TailOf(second[0]), whole, 61, 65, 80)
	idle := cut(t, TailOf(third[1]), whole, 81, 80)
	idle[0].Until = third[1].Until.Add(time.Second)
	last := cut(t, TailOf(idle[0]), whole, 81, 100)
	r := Replay{Last: 5}
	for _, list := range [][]*Segment{old, first, back, second, third[1:], idle, last} {
		for _, s := range list {
			if _, err := r.Add(s); err != nil {
				t.Errorf("%d to %d: %v", s.First, s.Last, err)
			}
		}
	}
	if r.Last != 100 {
		t.Errorf("it ends with %d", r.Last)
	}
	if s := last[0]; s.Trail.Origin != 50 || s.Trail.Previous != linkTo(third[1]) {
		t.Errorf("the last trail is %+v", s.Trail)
	}
}

func TestASegmentOfAnotherLogIsRefused(t *testing.T) {
	whole, other := randomSegment(5, 1, 60), randomSegment(6, 1, 60)
	ours := cut(t, NewTail(whole.Cluster, 0), whole, 1, 10, 20, 30)
	for what, s := range map[string]*Segment{
		"of a log that begins after revision 20": cut(t, NewTail(whole.Cluster, 20), whole, 21, 30)[0],
		"is not what its writer stored":          cut(t, NewTail(whole.Cluster, 0), other, 1, 20, 30)[1],
	} {
		r := Replay{}
		for _, before := range ours[:2] {
			if _, err := r.Add(before); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Add(s); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), what) {
			t.Errorf("want %q, got %v", what, err)
		}
	}
	s := *ours[1]
	s.Trail = &Trail{Origin: 20}
	if _, err := s.Encode(); err == nil || !strings.Contains(err.Error(), "and its log after 20") {
		t.Errorf("a log that begins after its segment: %v", err)
	}
}

// An index keeps less than the keys, and its chains are the same.
func TestAnIndexHasTheChainsOfItsKeys(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var keys []Key
		index := NewIndex(7)
		earliest, idle := map[int64]time.Time{}, 0
		for last, n := int64(0), 0; n < 40; n++ {
			first := max(1, last+1-rng.Int64N(3)+rng.Int64N(8)/7*5) // often after the last one, at times before its end, or after a gap
			end := first - 1 + rng.Int64N(3)*rng.Int64N(10)
			k := Key{Cluster: 7, First: first, Last: end, Until: began.Add(time.Duration(n+rng.IntN(3)) * time.Second)}
			k.Text = textOf("x", k)
			if parsed, ours := ParseKey("x", k.Text); !ours || parsed != k {
				t.Fatalf("%+v is %+v", k, parsed)
			}
			keys, last = append(keys, k), max(last, end)
		}
		slices.SortFunc(keys, func(a, b Key) int { return strings.Compare(a.Text, b.Text) })
		keys = slices.Compact(keys)
		if seed%2 == 0 {
			rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		for _, k := range keys {
			index.Add(k, 9)
			if k.Last < k.First {
				idle++
				if at, there := earliest[k.First]; !there || k.Until.Before(at) {
					earliest[k.First] = k.Until
				}
			}
		}
		for from := int64(-1); from < 200; from += 1 + rng.Int64N(9) {
			var got []Key
			for m := range index.Chain(from) {
				if m.Size() != 9 {
					t.Fatalf("the size is %d", m.Size())
				}
				got = append(got, index.Key("x", m))
			}
			if want := Chain(keys, from); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the chain after %d is %+v, want %+v", seed, from, got, want)
			}
		}
		for m := range index.Marks() {
			if m.Last < m.First && m.Until().Equal(earliest[m.First]) {
				delete(earliest, m.First)
			}
		}
		if len(earliest) > 0 || idle == 0 {
			t.Fatalf("seed %d: %d without changes; the index lacks the first ones after %v", seed, idle, earliest)
		}
	}
}

// A cluster to which nobody writes stores a segment a minute.
func TestAnIdleLogTakesNoMemory(t *testing.T) {
	index := NewIndex(7)
	for i := range 100_000 {
		index.Add(Key{Cluster: 7, First: 11, Last: 10, Until: began.Add(time.Duration(i) * time.Minute)}, 9)
	}
	if len(index.marks) != 2 || !index.marks[0].Until().Equal(began) || !index.marks[1].Until().Equal(began.Add(99_999*time.Minute)) {
		t.Errorf("there are %d marks: %+v", len(index.marks), index.marks[:2])
	}
}
