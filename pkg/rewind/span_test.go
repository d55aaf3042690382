// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/pages"
)

// counting counts what is read.
type counting struct {
	io.ReaderAt
	bytes int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func TestTheSpanIsReadFromAFewPages(t *testing.T) {
	for seed, transactions := range []int{0, 1, 2, 10, 100, 1000, 3000} {
		h := newHistory(t, uint64(seed), transactions)
		file, err := os.Open(h.snapshot(t))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		from := &counting{ReaderAt: file}
		span, err := ReadSpan(from)
		if err != nil || span != h.span {
			t.Errorf("%d transactions: %+v, %v, want %+v", transactions, span, err, h.span)
		}
		if from.bytes > 64<<10 {
			t.Errorf("%d transactions: it has read %d bytes", transactions, from.bytes)
		}
	}
}

func TestASpanOfSomethingElse(t *testing.T) {
	h := newHistory(t, 2, 300)
	text, err := os.ReadFile(h.snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"nothing": nil, "text": bytes.Repeat([]byte("no database "), 10_000), "the beginning": text[:9000], "zeros": make([]byte, 100_000),
	} {
		if _, err := ReadSpan(bytes.NewReader(content)); !errors.Is(err, pages.ErrNoDatabase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whatever is wrong in it, the search ends.
	rng := rand.New(rand.NewPCG(1, 1))
	wrong := 0
	for range 300 {
		broken := bytes.Clone(text)
		for range 1 + rng.IntN(2000) {
			broken[8192+rng.IntN(len(broken)-8192)] = byte(rng.Uint32())
		}
		if _, err := ReadSpan(bytes.NewReader(broken)); err != nil {
			if wrong++; !errors.Is(err, pages.ErrNoDatabase) {
				t.Fatal(err)
			}
		}
	}
	if wrong == 0 {
		t.Error("nothing was ever found wrong")
	}
}

type failing struct{}

var errStore = errors.New("the store is down")

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errStore }

func TestAnErrorOfTheReaderIsNoFaultOfTheSnapshot(t *testing.T) {
	if _, err := ReadSpan(failing{}); !errors.Is(err, errStore) || errors.Is(err, pages.ErrNoDatabase) {
		t.Error(err)
	}
}

func TestASpanSaysWhatItHolds(t *testing.T) {
	s := Span{Oldest: 3, Newest: 5}
	if s.Holds(2) || !s.Holds(3) || !s.Holds(5) || s.Holds(6) || fmt.Sprint(s) != "3 to 5" {
		t.Errorf("%v", s)
	}
}
