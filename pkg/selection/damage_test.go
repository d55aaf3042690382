// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/test/race"
)

const (
	logFirst, logLast = 1000, 4000
	basesApart        = 100
)

// library is a store with backups and a long log of one cluster.
type library struct {
	*shelf
	segments map[string]*changelog.Segment // by key
}

// newLibrary has a log of 3,000 revisions by writers that overlap now and then. If the logs of
// two libraries differ in their origin, they differ in one change of each revision, too.
func newLibrary(t *testing.T, origin int64) *library {
	t.Helper()
	rng := rand.New(rand.NewPCG(16, 16))
	l := &library{newShelf(), map[string]*changelog.Segment{}}
	revisions := map[int64]changelog.Revision{}
	for main := int64(1); main <= logLast; main++ {
		r := changelog.Revision{Main: main, At: moment(int(main))}
		for i := range 1 + rng.IntN(3) {
			r.Changes = append(r.Changes, changelog.Change{Tombstone: rng.IntN(4) == 0, KeyValue: fmt.Appendf(nil, "%d.%d %d of %d", main, i, rng.Uint64(), origin)})
		}
		revisions[main] = r
	}
	tails := map[int64]*changelog.Segment{} // the segments that end with a revision
	var tail *changelog.Tail
	write := func(from, last int64, until time.Time) {
		s := &changelog.Segment{Cluster: first, First: from, Last: last, Until: until}
		for main := from; main <= last; main++ {
			s.Revisions = append(s.Revisions, revisions[main])
		}
		if rng.IntN(2) == 0 && last >= from {
			s.Leases = append(s.Leases, changelog.Lease{ID: rng.Int64(), TTL: 1 + rng.Int64N(1000)})
		}
		tail.Tie(s)
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		tail.Stored(s)
		key := changelog.KeyOf("a/etcd", s)
		l.put(key, text)
		l.segments[key], tails[last] = s, s
	}
	tail = changelog.NewTail(first, origin)
	write(origin+1, logFirst, moment(logFirst))
	for last := int64(logFirst); last < logLast; {
		before := last
		last = min(last+1+rng.Int64N(60), logLast)
		if rng.IntN(6) == 0 && before > logFirst+100 {
			// Another operator continues an earlier segment. Both overlap.
			for before--; tails[before] == nil; before-- {
			}
			tail = changelog.TailOf(tails[before])
		}
		write(before+1, last, moment(int(last)).Add(time.Duration(rng.IntN(900))*time.Millisecond))
		if rng.IntN(5) == 0 {
			write(last+1, last, moment(int(last)).Add(950*time.Millisecond)) // nothing came
		}
	}
	return l
}

// restore looks for what takes the backup of a revision to another one.
func (l *library) restore(t *testing.T, base, to int64) error {
	t.Helper()
	key := fmt.Sprintf("a/etcd_v%d_2026-07-01-00:00:00", base)
	l.put(key, holding(t, int(base), int(base)), backupobject.MetaCluster, fmt.Sprintf("%016x", first))
	defer delete(l.objects, key)
	_, _, err := Find(t.Context(), l.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: to}, nil)
	return err
}

// path is the segments that a restore reads.
type path struct {
	from, to int64
	keys     []changelog.Key
}

func (l *library) path(from, to int64) path {
	log := changelog.NewIndex(first)
	for key, book := range l.objects {
		if k, ours := changelog.ParseKey("a/etcd", key); ours {
			log.Add(k, book.Size)
		}
	}
	p := path{from: from, to: to}
	for _, m := range chain(log, from, to) {
		p.keys = append(p.keys, log.Key("a/etcd", m))
	}
	return p
}

// with is the library with other content of some objects; nil: without them.
func (l *library) with(contents map[string][]byte) *library {
	other := &library{&shelf{objects: maps.Clone(l.objects)}, l.segments}
	for key, content := range contents {
		if delete(other.objects, key); content != nil {
			other.put(key, content)
		}
	}
	return other
}

// forge stores a segment with an extra field, and the right lengths and SHA-256, whatever it
// holds.
func forge(t *testing.T, s *changelog.Segment, extra []byte) []byte {
	t.Helper()
	out := bytes.NewBuffer([]byte("etcdlog1\x00\x00\x00\x00\x00\x00\x00\x00"))
	numbers := func(list ...uint64) (text []byte) {
		for _, n := range list {
			text = binary.AppendUvarint(text, n)
		}
		return text
	}
	out.Write(numbers(s.Cluster, uint64(s.First), uint64(len(s.Revisions)), uint64(s.Until.UnixMilli()), uint64(len(s.Leases)))) // positive
	packer := gzip.NewWriter(out)
	packer.Extra = extra
	var content []byte
	for _, l := range s.Leases {
		content = append(content, numbers(uint64(l.ID), uint64(l.TTL))...) // positive
	}
	before := int64(0)
	for _, r := range s.Revisions {
		at := r.At.UnixMilli()
		content = append(content, numbers(uint64(at-before), uint64(len(r.Changes)))...) // positive
		before = at
		for _, c := range r.Changes {
			kind := uint64(len(c.KeyValue)) * 2
			if c.Tombstone {
				kind++
			}
			content = append(append(content, numbers(kind)...), c.KeyValue...)
		}
	}
	_, err := packer.Write(content)
	if err = errors.Join(err, packer.Close()); err != nil {
		t.Fatal(err)
	}
	text := out.Bytes()
	binary.BigEndian.PutUint64(text[8:], uint64(len(text)-16)) // positive
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

// extraOf is the extra field of a stored segment.
func extraOf(t *testing.T, text []byte) []byte {
	t.Helper()
	at := bytes.Index(text, []byte{0x1f, 0x8b, 8})
	unpacked, err := gzip.NewReader(bytes.NewReader(text[at:]))
	if err != nil {
		t.Fatal(err)
	}
	return unpacked.Extra
}

// copied is a copy whose revisions, changes and leases may be edited.
func copied(s *changelog.Segment) *changelog.Segment {
	c := *s
	c.Revisions, c.Leases = slices.Clone(s.Revisions), slices.Clone(s.Leases)
	for i := range c.Revisions {
		c.Revisions[i].Changes = slices.Clone(c.Revisions[i].Changes)
	}
	return &c
}

// tiedAgain gives a segment a trail that fits what it holds now.
func tiedAgain(s *changelog.Segment) *changelog.Segment {
	before := &changelog.Segment{Cluster: s.Cluster, First: s.First, Last: s.First - 1, Trail: &changelog.Trail{Origin: s.Trail.Origin, After: s.Trail.Before, Previous: s.Trail.Previous}}
	changelog.TailOf(before).Tie(s)
	return s
}

// edits change what a segment holds, and report false if they find nothing to change.
var edits = map[string]func(*rand.Rand, *changelog.Segment) bool{
	"a flipped byte": func(rng *rand.Rand, s *changelog.Segment) bool {
		c := anyChange(rng, s)
		c.KeyValue = slices.Clone(c.KeyValue)
		c.KeyValue[rng.IntN(len(c.KeyValue))] ^= 1 << rng.IntN(8)
		return true
	},
	"a put that became a deletion": func(rng *rand.Rand, s *changelog.Segment) bool {
		c := anyChange(rng, s)
		c.Tombstone = !c.Tombstone
		return true
	},
	"a dropped change": func(rng *rand.Rand, s *changelog.Segment) bool {
		r := &s.Revisions[rng.IntN(len(s.Revisions))]
		i := rng.IntN(len(r.Changes))
		r.Changes = slices.Delete(r.Changes, i, i+1)
		return true
	},
	"a doubled change": func(rng *rand.Rand, s *changelog.Segment) bool {
		r := &s.Revisions[rng.IntN(len(s.Revisions))]
		i := rng.IntN(len(r.Changes))
		r.Changes = slices.Insert(r.Changes, i, r.Changes[i])
		return true
	},
	"swapped changes": func(rng *rand.Rand, s *changelog.Segment) bool {
		r := &s.Revisions[rng.IntN(len(s.Revisions))]
		if len(r.Changes) < 2 {
			return false
		}
		r.Changes[0], r.Changes[1] = r.Changes[1], r.Changes[0]
		return true
	},
	"swapped revisions": func(rng *rand.Rand, s *changelog.Segment) bool {
		i, j := rng.IntN(len(s.Revisions)), rng.IntN(len(s.Revisions))
		s.Revisions[i].Changes, s.Revisions[j].Changes = s.Revisions[j].Changes, s.Revisions[i].Changes
		return i != j
	},
	"a dropped revision": func(rng *rand.Rand, s *changelog.Segment) bool {
		i := rng.IntN(len(s.Revisions))
		s.Revisions = slices.Delete(s.Revisions, i, i+1)
		return true
	},
	"a doubled revision": func(rng *rand.Rand, s *changelog.Segment) bool {
		i := rng.IntN(len(s.Revisions))
		s.Revisions = slices.Insert(s.Revisions, i, s.Revisions[i])
		return true
	},
	"a dropped revision and a doubled one": func(rng *rand.Rand, s *changelog.Segment) bool {
		i, j := rng.IntN(len(s.Revisions)), rng.IntN(len(s.Revisions))
		double := s.Revisions[j]
		s.Revisions = slices.Insert(slices.Delete(s.Revisions, i, i+1), min(j, len(s.Revisions)-1), double)
		return i != j && i != j+1
	},
}

// quietEdits leave the changes as they are.
var quietEdits = map[string]func(*rand.Rand, *changelog.Segment) bool{
	"another time": func(rng *rand.Rand, s *changelog.Segment) bool {
		// The last one may move without a contradiction.
		r := &s.Revisions[len(s.Revisions)-1]
		r.At = r.At.Add(time.Duration(1+rng.IntN(900)) * time.Millisecond)
		return true
	},
	"another lease": func(rng *rand.Rand, s *changelog.Segment) bool {
		if len(s.Leases) == 0 {
			return false
		}
		s.Leases[0].ID ^= 1 << rng.IntN(60)
		return true
	},
	"another time to live": func(rng *rand.Rand, s *changelog.Segment) bool {
		if len(s.Leases) == 0 {
			return false
		}
		s.Leases[0].TTL += 1 + rng.Int64N(100)
		return true
	},
	"a dropped lease": func(_ *rand.Rand, s *changelog.Segment) bool {
		if len(s.Leases) == 0 {
			return false
		}
		s.Leases = s.Leases[1:]
		return true
	},
}

func anyChange(rng *rand.Rand, s *changelog.Segment) *changelog.Change {
	r := &s.Revisions[rng.IntN(len(s.Revisions))]
	return &r.Changes[rng.IntN(len(r.Changes))]
}

// rough are kinds of damage to the stored bytes.
var rough = map[string]func(*rand.Rand, []byte) []byte{
	"a flipped bit": func(rng *rand.Rand, text []byte) []byte {
		text[rng.IntN(len(text))] ^= 1 << rng.IntN(8)
		return text
	},
	"a truncated object": func(rng *rand.Rand, text []byte) []byte { return text[:rng.IntN(len(text))] },
	"a dropped part": func(rng *rand.Rand, text []byte) []byte {
		i := rng.IntN(len(text))
		return slices.Delete(text, i, min(i+1+rng.IntN(50), len(text)))
	},
	"a doubled part": func(rng *rand.Rand, text []byte) []byte {
		i := rng.IntN(len(text) - 1)
		return slices.Insert(text, i, slices.Clone(text[i:min(i+1+rng.IntN(50), len(text))])...)
	},
	"something behind it": func(rng *rand.Rand, text []byte) []byte { return append(text, make([]byte, 1+rng.IntN(50))...) },
	"zeros":               func(_ *rand.Rand, text []byte) []byte { clear(text[len(text)/3:]); return text },
	"the object twice":    func(_ *rand.Rand, text []byte) []byte { return append(text, text...) },
}

// damage is the contents of a variant; nil: this kind finds nothing to damage there.
type damage func(t *testing.T, rng *rand.Rand, l, foreign *library, p path, at int) map[string][]byte

func kinds() map[string]damage {
	all := map[string]damage{
		"a missing segment": func(_ *testing.T, _ *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			contents := map[string][]byte{p.keys[at].Text: nil}
			if l.with(contents).path(p.from, p.to).keys != nil {
				return nil // another writer has stored it, too
			}
			return contents
		},
		"swapped segments": func(_ *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			other := rng.IntN(len(p.keys))
			if at == other {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: l.objects[p.keys[other].Text].content, p.keys[other].Text: l.objects[p.keys[at].Text].content}
		},
		"a doubled segment": func(_ *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			other := rng.IntN(len(p.keys))
			if at == other {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: l.objects[p.keys[other].Text].content}
		},
		"a segment of another cluster": func(t *testing.T, _ *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			s := copied(l.segments[p.keys[at].Text])
			s.Cluster = second
			return map[string][]byte{p.keys[at].Text: forge(t, s, nil)}
		},
		// It is whole and right, but for that it comes from another log of the same cluster ID.
		"a segment of another log": func(_ *testing.T, _ *rand.Rand, _, foreign *library, p path, at int) map[string][]byte {
			s := foreign.segments[p.keys[at].Text]
			if s == nil || len(p.keys) == 1 || len(s.Revisions) == 0 {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: foreign.objects[p.keys[at].Text].content}
		},
	}
	for name, spoil := range rough {
		all[name] = func(_ *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			before := l.objects[p.keys[at].Text].content
			after := spoil(rng, slices.Clone(before))
			if bytes.Equal(before, after) {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: after}
		}
	}
	edited := func(edit func(*rand.Rand, *changelog.Segment) bool, rng *rand.Rand, l *library, p path, at int) *changelog.Segment {
		s := copied(l.segments[p.keys[at].Text])
		if len(s.Revisions) == 0 || !edit(rng, s) {
			return nil
		}
		return s
	}
	for name, edit := range edits {
		all[name+", with a right SHA-256"] = func(t *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			s := edited(edit, rng, l, p, at)
			if s == nil {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: forge(t, s, extraOf(t, l.objects[p.keys[at].Text].content))}
		}
		all[name+", with a right SHA-256 and digest"] = func(t *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			s := edited(edit, rng, l, p, at)
			if s == nil || at == len(p.keys)-1 {
				return nil // nothing that is restored follows it
			}
			extra := extraOf(t, l.objects[p.keys[at].Text].content)
			if text, err := tiedAgain(s).Encode(); err == nil {
				extra = extraOf(t, text)
			}
			return map[string][]byte{p.keys[at].Text: forge(t, s, extra)}
		}
		all[name+", with a right SHA-256 and no trail"] = func(t *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			s := edited(edit, rng, l, p, at)
			if s == nil || at == 0 || at == len(p.keys)-1 {
				return nil // nothing shows that there was one
			}
			return map[string][]byte{p.keys[at].Text: forge(t, s, nil)}
		}
	}
	for name, edit := range quietEdits {
		all[name+", with a right SHA-256"] = func(t *testing.T, rng *rand.Rand, l, _ *library, p path, at int) map[string][]byte {
			s := edited(edit, rng, l, p, at)
			follows := slices.ContainsFunc(p.keys[at+1:], func(k changelog.Key) bool {
				previous := l.segments[k.Text].Trail.Previous
				return previous.First == p.keys[at].First && previous.Last == p.keys[at].Last && previous.Until.Equal(p.keys[at].Until)
			})
			if s == nil || !follows {
				return nil
			}
			return map[string][]byte{p.keys[at].Text: forge(t, s, extraOf(t, l.objects[p.keys[at].Text].content))}
		}
	}
	return all
}

// Whatever happens to what a restore reads of the log, the restore is refused and names an
// object. Each kind of damage is tried at random places, also with a SHA-256 that fits.
func TestEachDamageOfALogIsRefused(t *testing.T) {
	variants := 10_000
	if race.Enabled {
		variants = 2_000
	}
	l, foreign := newLibrary(t, 900), newLibrary(t, 800)
	all := kinds()
	names := slices.Sorted(maps.Keys(all))
	tried := map[string]int{}
	for n, done := uint64(0), 0; done < variants; n++ {
		rng := rand.New(rand.NewPCG(n, 1))
		base := int64(logFirst + basesApart*rng.IntN((logLast-logFirst)/basesApart))
		to := min(base+20+rng.Int64N(150), logLast)
		p := l.path(base, to)
		at, name := rng.IntN(len(p.keys)), names[rng.IntN(len(names))]
		contents := all[name](t, rng, l, foreign, p, at)
		if contents == nil {
			continue
		}
		done++
		tried[name]++
		err := l.with(contents).restore(t, base, to)
		named := err != nil && (strings.Contains(err.Error(), "bucket/a/etcd_log/") || strings.Contains(err.Error(), "bucket/a/etcd_v"))
		if !named || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOutside) {
			t.Errorf("variant %d, %s in %s of %d segments from revision %d to %d: %v", n, name, p.keys[at].Text, len(p.keys), base, to, err)
		}
	}
	for _, name := range names {
		if tried[name] < variants/500 {
			t.Errorf("%s was tried %d times", name, tried[name])
		}
	}
	// Without damage, all of it can be restored.
	for base := int64(logFirst); base < logLast; base += basesApart {
		if err := l.restore(t, base, logLast); err != nil {
			t.Errorf("from revision %d: %v", base, err)
		}
	}
}
