// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	mathrand "math/rand/v2"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	// large is the size of an object that needs several parts.
	large = 25*mib + 123
)

// content is the body of an upload: random bytes that are never in memory at once.
type content struct {
	random *mathrand.ChaCha8
	left   int64
	read   int64
	hash   hash.Hash

	// at is called once, after this many bytes were read. Its error is the body's.
	at   func() error
	when int64
	// ended means that the end was read.
	ended bool
}

func newContent(size int64) *content {
	var seed [32]byte
	_, _ = rand.Read(seed[:])
	return &content{random: mathrand.NewChaCha8(seed), left: size, hash: sha256.New()}
}

// after makes content call a function after this many bytes were read.
func (c *content) after(bytes int64, call func() error) *content {
	c.when, c.at = bytes, call
	return c
}

func (c *content) Read(p []byte) (int, error) {
	if c.at != nil && c.read >= c.when {
		call := c.at
		c.at = nil
		if err := call(); err != nil {
			return 0, err
		}
	}
	if c.left == 0 {
		c.ended = true
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), c.left, 64*kib)] // as a network delivers it
	n, err := c.random.Read(p)
	c.left -= int64(n)
	c.read += int64(n)
	c.hash.Write(p[:n])
	return n, err
}

// sum returns the checksum of the bytes read so far.
func (c *content) sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }

// put stores an object and fails the test if that fails.
func (s *suite) put(t *testing.T, in store.Store, key string, upload store.Upload) store.Object {
	t.Helper()
	object, err := in.Put(t.Context(), key, upload)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return object
}

// putSize stores an object of random content and returns its checksum.
func (s *suite) putSize(t *testing.T, in store.Store, key string, size int64) string {
	t.Helper()
	body := newContent(size)
	s.put(t, in, key, store.Upload{Body: body, Size: size})
	return body.sum()
}

// expect checks that an object has the content with a checksum.
func (s *suite) expect(t *testing.T, in store.Store, key string, size int64, sum string) {
	t.Helper()
	body, err := in.Get(t.Context(), key, 0)
	if err != nil {
		t.Errorf("get %s: %v", key, err)
		return
	}
	got := sha256.New()
	n, err := io.Copy(got, body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Errorf("read %s: %v", key, err)
	}
	if n != size || hex.EncodeToString(got.Sum(nil)) != sum {
		t.Errorf("%s has %d bytes, want %d with another checksum", key, n, size)
	}
}

// expectNothing checks that there is neither an object nor an upload.
func (s *suite) expectNothing(t *testing.T, in store.Store, key string) {
	t.Helper()
	if object, err := in.Stat(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("stat %s: %+v, error %v, want %v", key, object, err, store.ErrNotFound)
	}
	if keys := s.list(t, in, key); len(keys) > 0 {
		t.Errorf("there are %q", keys)
	}
	if s.Lingers == "" {
		s.expectFinished(t)
	}
}

// expectReplaced checks that keys of failed uploads accept another upload, after which nothing
// of the failed ones is left.
func (s *suite) expectReplaced(t *testing.T, in store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		s.expect(t, in, key, large, s.putSize(t, in, key, large))
	}
	s.expectFinished(t)
}

func (s *suite) expectFinished(t *testing.T) {
	t.Helper()
	if left := s.Unfinished(t); len(left) > 0 {
		t.Errorf("the server has unfinished uploads: %q", left)
	}
}

// list returns the keys with a prefix, as they come.
func (s *suite) list(t *testing.T, in store.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for object, err := range in.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("list %s: %v", prefix, err)
		}
		keys = append(keys, object.Key)
	}
	return keys
}
