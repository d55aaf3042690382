// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// newDatabase opens a database as etcd does, and the file once more.
func newDatabase(t *testing.T) (*bbolt.DB, *os.File) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return db, file
}

func update(t *testing.T, db *bbolt.DB, do func(*bbolt.Tx) error) {
	t.Helper()
	if err := db.Update(do); err != nil {
		t.Fatal(err)
	}
}

// put writes values into a bucket.
func put(t *testing.T, db *bbolt.DB, bucket string, values map[string][]byte) {
	t.Helper()
	update(t, db, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		for key, value := range values {
			if err := b.Put([]byte(key), value); err != nil {
				return err
			}
		}
		return nil
	})
}

func open(t *testing.T, file *os.File) *Database {
	t.Helper()
	d, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWhatBboltWritesIsReadWhileItIsOpen(t *testing.T) {
	db, file := newDatabase(t)
	rng := rand.New(rand.NewPCG(1, 2))
	want := map[string][]byte{}
	for round := range 40 {
		change := map[string][]byte{}
		for range rng.IntN(200) {
			change[fmt.Sprintf("key-%d", rng.IntN(3000))] = bytes.Repeat([]byte{byte(round)}, rng.IntN(9000))
		}
		put(t, db, "large", change)
		put(t, db, "small", map[string][]byte{"round": {byte(round)}})
		for key, value := range change {
			want[key] = value
		}
	}
	d := open(t, file)
	large, found, err := d.Bucket([]byte("large"))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	last := ""
	for key, value := range want {
		if got, found, err := large.Get([]byte(key)); err != nil || !found || !bytes.Equal(got, value) {
			t.Fatalf("%s has %d bytes, found %t, %v, want %d", key, len(got), found, err, len(value))
		}
		last = max(last, key)
	}
	if got, err := large.Last(); err != nil || string(got) != last {
		t.Errorf("the last key is %q, %v, want %q", got, err, last)
	}
	for _, key := range []string{"", "key-", "key-1x", "z"} {
		if got, found, err := large.Get([]byte(key)); found || err != nil {
			t.Errorf("%q is found with %d bytes, %v", key, len(got), err)
		}
	}
	small, found, err := d.Bucket([]byte("small"))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if got, _, err := small.Get([]byte("round")); err != nil || !bytes.Equal(got, []byte{39}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, found, err := d.Bucket([]byte("none")); found || err != nil {
		t.Errorf("a bucket that does not exist: %t, %v", found, err)
	}
}

func TestACopyByPagesEqualsThatOfBbolt(t *testing.T) {
	db, file := newDatabase(t)
	for round := range 7 { // the newest meta page is the first one and the second one in turn
		put(t, db, "bucket", map[string][]byte{fmt.Sprintf("key-%d", round): bytes.Repeat([]byte("v"), 10_000*round)})
		var want bytes.Buffer
		if err := db.View(func(tx *bbolt.Tx) error {
			_, err := tx.WriteTo(&want)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		d := open(t, file)
		got := make([]byte, d.Size())
		if _, err := file.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		copy(got, d.MetaPages())
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("round %d: %d bytes differ from the %d that bbolt writes", round, len(got), want.Len())
		}
	}
}

func TestEachCommitIsAnotherTransaction(t *testing.T) {
	db, file := newDatabase(t)
	put(t, db, "bucket", map[string][]byte{"key": nil})
	for range 5 {
		before := open(t, file)
		if again := open(t, file); again.Transaction() != before.Transaction() {
			t.Fatal("without a commit, the transaction differs")
		}
		put(t, db, "bucket", map[string][]byte{"key": []byte("value")})
		if after := open(t, file); after.Transaction() != before.Transaction()+1 {
			t.Errorf("transaction %d follows %d", after.Transaction(), before.Transaction())
		}
	}
}

// A value of several pages is a way for users to write what they want at the beginning of a page.
func TestAValueThatLooksLikeAMetaPageIsNone(t *testing.T) {
	db, file := newDatabase(t)
	put(t, db, "bucket", map[string][]byte{"key": []byte("value")})
	size := db.Info().PageSize
	page := open(t, file).MetaPages()[:size]
	meta := page[headerSize : headerSize+metaSize]
	binary.LittleEndian.PutUint64(meta[48:], 1<<40)
	for _, claimed := range []uint32{uint32(size), 8192, 16384, 32768, 65536} {
		binary.LittleEndian.PutUint32(meta[8:], claimed)
		binary.LittleEndian.PutUint64(meta[56:], checksum(meta))
		value := bytes.Repeat(meta, 4096)
		for shift := range 4 * metaSize { // the value has another place each time
			put(t, db, "bucket", map[string][]byte{"key": append(make([]byte, shift/4), value...)})
			if got := open(t, file).Transaction(); got >= 1<<40 {
				t.Fatalf("with pages of %d bytes and a shift of %d, it is transaction %d", claimed, shift, got)
			}
		}
	}
}

func TestALargeValueIsRefused(t *testing.T) {
	db, file := newDatabase(t)
	put(t, db, "bucket", map[string][]byte{"fits": make([]byte, mostValue), "large": make([]byte, mostValue+1)})
	b, _, err := open(t, file).Bucket([]byte("bucket"))
	if err != nil {
		t.Fatal(err)
	}
	if value, found, err := b.Get([]byte("fits")); err != nil || !found || len(value) != mostValue {
		t.Errorf("%d bytes, %t, %v", len(value), found, err)
	}
	if _, found, err := b.Get([]byte("large")); !errors.Is(err, ErrNoDatabase) || found {
		t.Errorf("%t, %v", found, err)
	}
}
