// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// sent is what a store received, in whatever order.
type sent struct {
	mu    sync.Mutex
	parts map[int][]byte
}

func (s *sent) send(_ context.Context, number int, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts == nil {
		s.parts = map[int][]byte{}
	}
	s.parts[number] = bytes.Clone(data) // it must not be kept
	return nil
}

func TestPartsAreTheContentInOrder(t *testing.T) {
	const size = 1000
	for _, length := range []int{1000, 1001, 1999, 2000, 2001, 10_500} {
		content := make([]byte, length)
		_, _ = rand.Read(content)
		body := iotest.HalfReader(bytes.NewReader(content))
		first, whole, err := FirstPart(body, size)
		if err != nil || whole {
			t.Fatalf("%d bytes: first part: whole %v, error %v", length, whole, err)
		}
		var s sent
		n, err := SendParts(t.Context(), first, body, s.send)
		if err != nil {
			t.Fatalf("%d bytes: %v", length, err)
		}
		var got []byte
		for i := 1; i <= n; i++ {
			if i < n && len(s.parts[i]) != size {
				t.Errorf("%d bytes: part %d has %d bytes, want %d", length, i, len(s.parts[i]), size)
			}
			got = append(got, s.parts[i]...)
		}
		if len(s.parts) != n || n != (length+size-1)/size {
			t.Errorf("%d bytes: %d parts sent, %d returned", length, len(s.parts), n)
		}
		if !bytes.Equal(got, content) {
			t.Errorf("%d bytes: the parts are not the content", length)
		}
	}
}

func TestContentShorterThanAPartIsWhole(t *testing.T) {
	for _, length := range []int{0, 1, 999} {
		part, whole, err := FirstPart(bytes.NewReader(make([]byte, length)), 1000)
		if err != nil || !whole || len(part) != length {
			t.Errorf("%d bytes: %d bytes, whole %v, error %v", length, len(part), whole, err)
		}
	}
}

func TestErrorsEndAnUpload(t *testing.T) {
	bad := errors.New("bad")
	body := io.MultiReader(bytes.NewReader(make([]byte, 3500)), iotest.ErrReader(bad))
	if _, _, err := FirstPart(iotest.ErrReader(bad), 1000); !errors.Is(err, bad) {
		t.Errorf("first part of a body that fails: %v", err)
	}
	var s sent
	if _, err := SendParts(t.Context(), make([]byte, 1000), body, s.send); !errors.Is(err, bad) {
		t.Errorf("body that fails: %v", err)
	}
	_, err := SendParts(t.Context(), make([]byte, 1000), rand.Reader, func(_ context.Context, n int, _ []byte) error {
		if n == 5 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Errorf("part that can't be sent: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err = SendParts(ctx, make([]byte, 1000), rand.Reader, func(_ context.Context, n int, _ []byte) error {
		if n == 5 {
			cancel(bad)
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Errorf("cancelled: %v", err)
	}
	_, err = SendParts(t.Context(), make([]byte, 1000), rand.Reader, func(context.Context, int, []byte) error { panic("a bug") })
	if err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("panic: %v", err)
	}
}

// io.ReadFull says the same of content that ends within a part.
func TestContentThatBreaksOffIsNotWhole(t *testing.T) {
	brokenOff := func(length int64) io.Reader {
		return io.MultiReader(io.LimitReader(rand.Reader, length), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	if _, _, err := FirstPart(brokenOff(10), 1000); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("within the first part: %v", err)
	}
	for _, length := range []int64{0, 10, 1000, 1010} {
		var s sent
		if _, err := SendParts(t.Context(), make([]byte, 1000), brokenOff(length), s.send); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("after %d bytes more: %v", length, err)
		}
	}
}

func TestPartsStayWithinTheStoresLimits(t *testing.T) {
	for _, size := range []int64{-1, 0, 1, 8 << 20, 2 << 30, 8 << 30, 100 << 30, 500 << 30} {
		part := PartSize(size)
		if part < 5<<20 || part%(1<<20) != 0 {
			t.Errorf("content of %d bytes: parts of %d", size, part)
		}
		if size/part > 9500 {
			t.Errorf("content of %d bytes: %d parts", size, size/part)
		}
	}
	for _, size := range []int64{8 << 30, 45 << 30} { // etcd's largest recommended size, and far beyond
		if got := PartSize(size); got != 5<<20 {
			t.Errorf("%d bytes go in parts of %d bytes", size, got)
		}
	}
}

// A size is what somebody says who answers as an etcd member.
func TestASizeThatIsNotTrueCostsLittleMemory(t *testing.T) {
	for _, size := range []int64{1 << 40, 5e17, math.MaxInt64, math.MinInt64} {
		if got := PartSize(size); got < 5<<20 || got > 64<<20 {
			t.Errorf("content that is said to have %d bytes goes in parts of %d", size, got)
		}
	}
}

func TestContentThatNeedsTooManyPartsIsRefused(t *testing.T) {
	none := func(context.Context, int, []byte) error { return nil }
	if n, err := SendParts(t.Context(), make([]byte, 2), io.LimitReader(rand.Reader, 2*9999), none); err != nil || n != 10_000 {
		t.Errorf("the most that fits: %d parts, %v", n, err)
	}
	for name, more := range map[string]io.Reader{"a byte more": io.LimitReader(rand.Reader, 2*9999+1), "without an end": rand.Reader} {
		n, err := SendParts(t.Context(), make([]byte, 2), more, none)
		if err == nil || !strings.Contains(err.Error(), "10000 parts of 2 bytes") || n != 10_000 {
			t.Errorf("%s: %d parts, %v", name, n, err)
		}
	}
}
