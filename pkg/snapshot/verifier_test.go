// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// verified also returns how much was written before the verdict.
func verified(content []byte, step int) (sum string, written int, err error) {
	v := NewVerifier(int64(len(content)))
	for piece := range slices.Chunk(content, step) {
		if _, err := v.Write(piece); err != nil {
			return "", written, err
		}
		written += len(piece)
	}
	sum, err = v.Sum()
	return sum, written, err
}

func TestAWholeSnapshotIsVerified(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		content := etcdtest.SnapshotFile(order, 5, 0)
		want := sha256.Sum256(content)
		for _, step := range []int{1, 79, 80, 81, 4096, 1 << 20} {
			if sum, _, err := verified(content, step); err != nil || sum != hex.EncodeToString(want[:]) {
				t.Errorf("%v, in pieces of %d: %s, %v", order, step, sum, err)
			}
		}
	}
}

func TestWhatIsNoWholeSnapshotIsFoundAsSoonAsCanBe(t *testing.T) {
	whole := etcdtest.SnapshotFile(binary.LittleEndian, 5, 0)
	changed := func(at int) []byte {
		c := slices.Clone(whole)
		c[at] ^= 1
		return c
	}
	for name, c := range map[string]struct {
		content []byte
		is      error
		want    string
		early   bool // before all of it was read
	}{
		"nothing":                        {nil, ErrNoSnapshot, "it is empty", false},
		"a word":                         {[]byte("hello"), ErrNoSnapshot, "it has only 5 bytes", false},
		"another file":                   {[]byte(strings.Repeat("not a database\n", 1000)), ErrNoSnapshot, "does not begin as etcd's database does", true},
		"a later format":                 {changed(metaVersionAt), ErrNoSnapshot, "does not begin as etcd's database does", true},
		"a snapshot cut in half":         {whole[:len(whole)/2], ErrDamaged, "it was cut off", true},
		"cut at the end of a page":       {whole[:4*4096], ErrDamaged, "it was cut off", true},
		"its last byte is gone":          {whole[:len(whole)-1], ErrDamaged, "is not of 20511 bytes", false},
		"its trailer is gone":            {whole[:5*4096], ErrNoSnapshot, "a member's data directory", true},
		"a bit is another one":           {changed(3 * 4096), ErrDamaged, "does not fit the sha256", false},
		"the number of pages is another": {changed(metaPagesAt), ErrDamaged, "does not fit the sha256", false},
		"something follows":              {append(slices.Clone(whole), whole[:512]...), ErrDamaged, "does not fit the sha256", false},
	} {
		for _, step := range []int{1, 100, 4096} {
			_, written, err := verified(c.content, step)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, in pieces of %d: %v, want %q", name, step, err, c.want)
			}
			if c.early && written > 4096 {
				t.Errorf("%s: %d bytes were read before it was known", name, written)
			}
		}
	}
}
