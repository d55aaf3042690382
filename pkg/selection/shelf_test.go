// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// shelf is a store in memory, read by one goroutine, with faults at will.
type shelf struct {
	store.Store // all that isn't reading
	objects     map[string]*book
	listErr     error
	// mu guards asked, and what Get changes in the books: a restore reads ahead.
	mu sync.Mutex
	// asked are the calls.
	asked []string
	// got gets the key of each Get, before it.
	got func(key string, offset int64)
}

type book struct {
	store.Object
	content []byte
	statErr error
	// faults are taken one by one, for each Get.
	faults []fault
}

// fault is what goes wrong with one Get.
type fault struct {
	err   error // of Get itself
	after int   // bytes until the content breaks
	with  error // of Read then; nil: it stalls
}

// snapshotOf is a snapshot of so many pages.
func snapshotOf(pages int, seed byte) []byte {
	return etcdtest.SnapshotFile(binary.LittleEndian, pages, seed)
}

func newShelf() *shelf { return &shelf{objects: map[string]*book{}} }

func (s *shelf) location(key string) *location.Location {
	return &location.Location{Store: s, Bucket: "bucket", Key: key}
}

// put stores content as an EtcdBackup does.
func (s *shelf) put(key string, content []byte, metadata ...string) *book {
	b := &book{content: content, Object: store.Object{Key: key, Size: int64(len(content)), Modified: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)}}
	b.Metadata = map[string]string{backupobject.MetaSize: strconv.Itoa(len(content)), backupobject.MetaVersion: "3.6.16"}
	for i := 0; i < len(metadata); i += 2 {
		b.Metadata[metadata[i]] = metadata[i+1]
	}
	s.objects[key] = b
	return b
}

func (s *shelf) find(key string) (*book, error) {
	b := s.objects[key]
	if b == nil {
		return nil, fmt.Errorf("%s: %w", key, store.ErrNotFound)
	}
	return b, nil
}

func (s *shelf) Stat(_ context.Context, key string) (store.Object, error) {
	s.mu.Lock()
	s.asked = append(s.asked, "stat "+key)
	s.mu.Unlock()
	b, err := s.find(key)
	if err != nil {
		return store.Object{}, err
	}
	return b.Object, b.statErr
}

func (s *shelf) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	if s.got != nil {
		s.got(key, offset)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, fmt.Sprintf("get %s from %d", key, offset))
	b, err := s.find(key)
	if err != nil {
		return nil, err
	}
	if offset > int64(len(b.content)) {
		return nil, errors.New("behind the end")
	}
	f := fault{after: len(b.content), with: io.EOF}
	if len(b.faults) > 0 {
		f, b.faults = b.faults[0], b.faults[1:]
	}
	if f.err != nil {
		return nil, f.err
	}
	rest := b.content[offset:]
	return io.NopCloser(io.MultiReader(bytes.NewReader(rest[:min(f.after, len(rest))]), ending{ctx, f.with})), nil
}

// ending is how a content ends.
type ending struct {
	ctx context.Context
	err error
}

func (e ending) Read([]byte) (int, error) {
	if e.err != nil {
		return 0, e.err
	}
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

// List returns no metadata, and yields the keys in no helpful order.
func (s *shelf) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		keys := slices.Sorted(maps.Keys(s.objects))
		for _, key := range keys {
			if o := s.objects[key].Object; strings.HasPrefix(key, prefix) && !yield(store.Object{Key: key, Size: o.Size, Modified: o.Modified}, nil) {
				return
			}
		}
		if s.listErr != nil {
			yield(store.Object{}, s.listErr)
		}
	}
}
