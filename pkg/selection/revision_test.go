// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// held are the snapshots that were made: bbolt syncs each to the disk.
var held sync.Map

// holding is a snapshot with some revisions.
func holding(t *testing.T, oldest, newest int) []byte {
	t.Helper()
	made, there := held.Load([2]int{oldest, newest})
	if !there {
		made, _ = held.LoadOrStore([2]int{oldest, newest}, makeHolding(t, oldest, newest))
	}
	return bytes.Clone(made.([]byte))
}

func makeHolding(t *testing.T, oldest, newest int) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	key := func(revision int) []byte {
		return append(append(binary.BigEndian.AppendUint64(nil, uint64(revision)), '_'), make([]byte, 8)...) // positive
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		keys, err := tx.CreateBucket([]byte("key"))
		for revision := oldest; err == nil && revision <= newest; revision++ {
			err = keys.Put(key(revision), []byte("a record"))
		}
		meta, metaErr := tx.CreateBucket([]byte("meta"))
		return errors.Join(err, metaErr, meta.Put([]byte("finishedCompactRev"), key(oldest)))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

func TestABackupMustHoldTheRevision(t *testing.T) {
	s := newShelf()
	s.put("a/etcd.backup", holding(t, 100, 900))
	s.put("a/text", snapshotOf(10, 1))
	for _, tc := range []struct {
		key      string
		revision int64
		kind     error
		says     string
	}{
		{"a/etcd.backup", 100, nil, ""},
		{"a/etcd.backup", 900, nil, ""},
		{"a/etcd.backup", 99, ErrOutside, "bucket/a/etcd.backup: the snapshot does not hold revision 99 any more: etcd had compacted its history up to 100; it holds the revisions 100 to 900"},
		{"a/etcd.backup", 901, ErrOutside, "the snapshot does not hold revision 901 yet: it holds the revisions 100 to 900"},
		{"a/text", 5, ErrDamaged, "bucket/a/text: it is no database of etcd"},
	} {
		s.asked = nil
		v, _, err := Find(t.Context(), s.location(tc.key), &api.RestoreSpec{Revision: tc.revision}, nil)
		if !errors.Is(err, tc.kind) || tc.kind != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("revision %d of %s: %v", tc.revision, tc.key, err)
		}
		if tc.kind == nil && v.EtcdRevision != 900 {
			t.Errorf("the revision of the backup is %d", v.EtcdRevision)
		}
		if tc.kind != nil && len(s.asked) > 6 {
			t.Errorf("asked for %q", s.asked)
		}
	}
}

func TestTheNewestBackupThatHoldsTheRevisionIsTaken(t *testing.T) {
	for revision, want := range map[int64]struct {
		key, says string
	}{
		9: {monday, ""}, 5: {tuesday, ""}, 10: {tuesday, ""}, 30: {midweek, ""}, 40: {sunday, ""},
		3:  {"", "none of the 4 backups bucket/a/etcd_v<revision>_<YYYY-MM-DD-HH:MM:SS> holds revision 3: the nearest that can be restored: 4"},
		15: {"", "holds revision 15: the nearest that can be restored: 10 and 20"},
		41: {"", "holds revision 41: the nearest that can be restored: 40"},
	} {
		s := newShelf()
		for key, span := range map[string][2]int{monday: {4, 9}, tuesday: {5, 10}, midweek: {20, 30}, sunday: {35, 40}} {
			s.put(key, holding(t, span[0], span[1]))
		}
		if revision == 9 {
			s.objects[tuesday].content[9000] ^= 1 // it holds it as well
		}
		v, passed, err := Find(t.Context(), s.location("a/etcd"), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: revision}, nil)
		if v.Key != want.key || (err == nil) != (want.says == "") {
			t.Errorf("revision %d: %+v, %v, passed over %q", revision, v, err, passed)
		}
		if want.says != "" && (!errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), want.says)) {
			t.Errorf("revision %d: %v", revision, err)
		}
	}
}

// The store fails for a while, and for good.
func TestTheRevisionsAreReadThroughFaultsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		b := s.put("a/etcd.backup", holding(t, 100, 900))
		b.faults = []fault{{err: errors.New("busy")}, {after: 100, with: errors.New("reset")}, {after: 100}}
		if _, _, err := Find(t.Context(), s.location("a/etcd.backup"), &api.RestoreSpec{Revision: 500}, nil); err != nil {
			t.Error(err)
		}
		b.faults = []fault{{err: fmt.Errorf("no: %w", store.ErrDenied)}}
		_, _, err := Find(t.Context(), s.location("a/etcd.backup"), &api.RestoreSpec{Revision: 500}, nil)
		var outside rewind.OutsideError
		if !errors.Is(err, store.ErrDenied) || errors.Is(err, ErrDamaged) || errors.As(err, &outside) {
			t.Error(err)
		}
		b.faults = []fault{{after: 1}, {after: 1}, {after: 1}, {after: 1}, {after: 1}}
		if _, _, err := Find(t.Context(), s.location("a/etcd.backup"), &api.RestoreSpec{Revision: 500}, nil); err == nil || !strings.Contains(err.Error(), "the store has delivered nothing for 1m0s") {
			t.Error(err)
		}
	})
}
