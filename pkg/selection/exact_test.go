// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func findExact(t *testing.T, s *shelf, key string) (Verified, error) {
	t.Helper()
	v, passed, err := Find(t.Context(), s.location(key), &api.RestoreSpec{}, nil)
	if len(passed) > 0 {
		t.Errorf("passed over %q", passed)
	}
	return v, err
}

func TestTheNamedBackupIsReadAndTold(t *testing.T) {
	content := snapshotOf(200, 0) // some pieces
	sum := sha256.Sum256(content)
	s := newShelf()
	s.put("a/etcd.backup", content,
		backupobject.MetaRevision, "42", backupobject.MetaStarted, "2026-06-30T10:00:00Z", backupobject.MetaLinearizable, "false", backupobject.MetaSHA256, hex.EncodeToString(sum[:]))
	var read []int64
	v, _, err := Find(t.Context(), s.location("a/etcd.backup"), &api.RestoreSpec{Pick: api.RestorePickExact}, func(key string, n, size int64) {
		if key != "a/etcd.backup" || size != int64(len(content)) {
			t.Errorf("progress of %s, %d bytes", key, size)
		}
		read = append(read, n)
	})
	want := Verified{
		Key: "a/etcd.backup", Path: "bucket/a/etcd.backup", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		EtcdVersion: "3.6.16", EtcdRevision: 42, Taken: time.Date(2026, 6, 30, 10, 0, 0, 0, time.UTC), Modified: v.Modified, Uncertain: true,
	}
	if err != nil || v != want || v.Modified.IsZero() {
		t.Errorf("got  %+v, %v\nwant %+v", v, err, want)
	}
	if !slices.IsSorted(read) || len(read) < 3 || read[len(read)-1] != int64(len(content)) {
		t.Errorf("progress %d", read)
	}
}

func TestWhatTheStoreDoesNotTellIsTakenFromTheKeyOrLeftOut(t *testing.T) {
	for key, want := range map[string]Verified{
		"a/etcd_v7_2018-05-01-10:20:30":  {EtcdRevision: 7, Taken: time.Date(2018, 5, 1, 10, 20, 30, 0, time.UTC)},
		"a/b_v1_v7_2018-05-01-10:20:30":  {EtcdRevision: 7, Taken: time.Date(2018, 5, 1, 10, 20, 30, 0, time.UTC)},
		"a/etcd_v07_2018-05-01-10:20:30": {},
		"etcd.backup":                    {},
	} {
		s := newShelf()
		s.put(key, snapshotOf(3, 0)).Metadata = map[string]string{backupobject.MetaVersion: "new", backupobject.MetaRevision: "-1", backupobject.MetaStarted: "now"}
		v, err := findExact(t, s, key)
		if err != nil || v.EtcdRevision != want.EtcdRevision || !v.Taken.Equal(want.Taken) || v.EtcdVersion != "" || v.Uncertain {
			t.Errorf("%s: %+v, %v", key, v, err)
		}
	}
}

func TestADamagedBackupIsToldFromWhatMayPass(t *testing.T) {
	whole := snapshotOf(20, 0)
	down := errors.New("the store is down")
	for name, c := range map[string]struct {
		change  func(*shelf, *book)
		damaged bool
		is      error
		want    string
	}{
		"cut off":               {func(_ *shelf, b *book) { b.content = whole[:9*4096]; b.Size = 9 * 4096 }, true, nil, "bucket/key: it has 36864 bytes, and by its metadata 81952 bytes were stored"},
		"cut off, no metadata":  {func(_ *shelf, b *book) { b.content = whole[:9*4096]; b.Size = 9 * 4096; b.Metadata = nil }, true, nil, "bucket/key: the snapshot is damaged: it was cut off"},
		"a bit is another one":  {func(_ *shelf, b *book) { b.content = slices.Clone(whole); b.content[5000] ^= 1 }, true, nil, "bucket/key: the snapshot is damaged: its content does not fit"},
		"empty":                 {func(_ *shelf, b *book) { b.content, b.Size, b.Metadata = nil, 0, nil }, true, nil, "bucket/key: this is no snapshot of etcd: it is empty"},
		"another good snapshot": {func(_ *shelf, b *book) { b.Metadata[backupobject.MetaSHA256] = strings.Repeat("0", 64) }, true, nil, "and by its metadata 0000"},
		"none":                  {func(s *shelf, _ *book) { delete(s.objects, "key") }, false, store.ErrNotFound, "look for the backup: key: there is no such object: compare the path with"},
		"none, and no list":     {func(s *shelf, _ *book) { delete(s.objects, "key"); s.listErr = store.ErrDenied }, false, store.ErrNotFound, "compare the path with"},
		"no bucket": {func(s *shelf, _ *book) {
			delete(s.objects, "key")
			s.listErr = fmt.Errorf("list: %w", store.ErrNoBucket)
		}, false, store.ErrNoBucket, "look for the backup: list"},
		"a schedule's path": {func(s *shelf, _ *book) {
			delete(s.objects, "key")
			s.put("key_v1_draft", whole)
			s.put("key_v7_2026-05-01-10:20:30", whole)
		}, false, store.ErrNotFound, "such as bucket/key_v7_2026-05-01-10:20:30: name one of them as the path, or set spec.pick to Newest"},
		"deleted while read":     {func(s *shelf, _ *book) { s.got = func(string, int64) { delete(s.objects, "key") } }, false, store.ErrNotFound, "read the backup"},
		"not allowed to be read": {func(_ *shelf, b *book) { b.faults = []fault{{err: fmt.Errorf("get: %w", store.ErrDenied)}} }, false, store.ErrDenied, "read the backup"},
		"not to be looked at":    {func(_ *shelf, b *book) { b.statErr = down }, false, down, "look for the backup"},
		"replaced while read": {func(_ *shelf, b *book) {
			b.faults = []fault{{after: 100, with: down}}
			b.content = slices.Concat(whole[:100], whole)
		}, true, nil, "does not fit"},
		"replaced by another while read": {func(s *shelf, b *book) {
			b.faults = []fault{{after: 9000, with: down}}
			s.got = func(_ string, offset int64) {
				if offset > 0 {
					b.content, b.Modified = snapshotOf(20, 1), b.Modified.Add(time.Second)
				}
			}
		}, false, nil, "was replaced by another one while it was read"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			c.change(s, s.put("key", whole))
			v, err := findExact(t, s, "key")
			if err == nil {
				t.Fatalf("%s: got %+v", name, v)
			}
			if errors.Is(err, ErrDamaged) != c.damaged || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: damaged %t: %v\nwant %q", name, errors.Is(err, ErrDamaged), err, c.want)
			}
		})
	}
}

func TestReadingGoesOnWhereTheConnectionBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		content := snapshotOf(20, 0)
		s.put("key", content).faults = []fault{
			{after: 5000, with: io.ErrUnexpectedEOF},
			{after: 0, with: io.EOF}, // as some proxies do
			{err: errors.New("connection refused")},
			{after: 10000}, // it stalls
		}
		began := time.Now()
		v, err := findExact(t, s, "key")
		if sum := sha256.Sum256(content); err != nil || v.SHA256 != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v, %v", v, err)
		}
		want := []string{"stat key", "get key from 0", "get key from 5000", "get key from 5000", "get key from 5000", "get key from 15000", "stat key"}
		if !slices.Equal(s.asked, want) {
			t.Errorf("asked %q, want %q", s.asked, want)
		}
		if waited, want := time.Since(began), (1+2+4+8)*time.Second+patience; waited != want {
			t.Errorf("it took %v, want %v", waited, want)
		}
	})
}

func TestReadingIsGivenUpWhenItComesNoFurther(t *testing.T) {
	broken := errors.New("reset")
	faults := func(n, after int) []fault { return slices.Repeat([]fault{{after: after, with: broken}}, n) }
	for name, c := range map[string]struct {
		pages  int
		faults []fault
		good   bool
	}{
		"it breaks at once":                  {20, faults(tries, 0), false},
		"it breaks after some bytes":         {20, faults(tries, 100), false},
		"it breaks once less":                {20, faults(tries-1, 0), true},
		"it breaks often, and makes its way": {(tries + 1) * enoughProgress / 4096, faults(tries+1, enoughProgress), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			s.put("key", snapshotOf(c.pages, 0)).faults = c.faults
			_, err := findExact(t, s, "key")
			if c.good && err != nil || !c.good && (!errors.Is(err, broken) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "5 times in a row")) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	for name, f := range map[string]fault{"while the store is waited for": {after: 9000}, "while the next try is": {err: errors.New("down")}} {
		synctest.Test(t, func(t *testing.T) {
			s := newShelf()
			s.put("key", snapshotOf(20, 0)).faults = []fault{f}
			edited := errors.New("the spec was edited")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, edited)
			defer cancel()
			if _, _, err := Find(ctx, s.location("key"), &api.RestoreSpec{}, nil); !errors.Is(err, edited) || errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
