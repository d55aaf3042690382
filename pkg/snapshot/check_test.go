// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
)

// database is content of a length, with etcd's trailer.
func database(length int) []byte {
	content := make([]byte, length)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	sum := sha256.Sum256(content)
	return append(content, sum[:]...)
}

func checked(content []byte, size int64, step int) (string, error) {
	c := newCheck(size)
	for piece := range slices.Chunk(content, step) {
		if err := c.add(piece); err != nil {
			return "", err
		}
	}
	return c.finish()
}

func TestAWholeSnapshotPassesHoweverItIsCut(t *testing.T) {
	for _, length := range []int{512, 1024, 65536} {
		content := database(length)
		sum := sha256.Sum256(content)
		for _, step := range []int{1, 3, 31, 32, 33, 64, 500, 512, 32768, 1 << 20} {
			got, err := checked(content, int64(len(content)), step)
			if err != nil || got != hex.EncodeToString(sum[:]) {
				t.Errorf("%d bytes in pieces of %d: %s, %v, want %x", len(content), step, got, err, sum)
			}
		}
	}
}

func TestADamagedSnapshotIsFound(t *testing.T) {
	whole := database(4096)
	flipped := func(at int) []byte {
		c := slices.Clone(whole)
		c[at] ^= 4
		return c
	}
	odd := database(1000)
	for name, c := range map[string]struct {
		content []byte
		size    int
		want    string
	}{
		"a bit flipped at the beginning":      {flipped(0), len(whole), "does not fit the sha256"},
		"a bit flipped in the middle":         {flipped(2000), len(whole), "does not fit the sha256"},
		"a bit flipped at the end":            {flipped(4095), len(whole), "does not fit the sha256"},
		"a bit flipped in the trailer":        {flipped(4100), len(whole), "does not fit the sha256"},
		"the trailer is missing":              {whole[:4096], len(whole), "it ends after 4096 of 4128 bytes"},
		"a part of the trailer is missing":    {whole[:4127], len(whole), "it ends after 4127 of 4128 bytes"},
		"something is missing in the middle":  {slices.Delete(slices.Clone(whole), 512, 1024), len(whole), "it ends after 3616 of 4128 bytes"},
		"something is missing, as announced":  {slices.Delete(slices.Clone(whole), 512, 1024), len(whole) - 512, "does not fit the sha256"},
		"a piece came twice":                  {slices.Insert(slices.Clone(whole), 512, whole[:512]...), len(whole), "continues after the 4128 bytes"},
		"it begins again":                     {append(whole[:2048:2048], whole...), len(whole), "continues after the 4128 bytes"},
		"nothing came":                        {nil, 32, "it ends after 0 of 32 bytes"},
		"a trailer alone":                     {database(0), 32, "is not of 32 bytes"},
		"a length that no database has":       {odd, len(odd), "is not of 1032 bytes"},
		"no trailer, of the announced length": {whole[:4096], 4096, "is not of 4096 bytes"},
	} {
		for _, step := range []int{1, 32, 512, 32768} {
			_, err := checked(c.content, int64(c.size), step)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, in pieces of %d: %v, want %q", name, step, err, c.want)
			}
		}
	}
}

func FuzzNoOtherContentPasses(f *testing.F) {
	whole := database(1024)
	f.Add(uint(100), []byte{1}, uint(32))
	f.Fuzz(func(t *testing.T, at uint, with []byte, step uint) {
		content := slices.Clone(whole)
		copy(content[at%uint(len(content)):], with)
		_, err := checked(content, int64(len(content)), int(step%2000)+1)
		if same := slices.Equal(content, whole); (err == nil) != same {
			t.Errorf("content is the same: %t, error: %v", same, err)
		}
	})
}
