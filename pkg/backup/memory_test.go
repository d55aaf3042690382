// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// memory is a store in memory, with faults at will.
type memory struct {
	mu      sync.Mutex
	objects map[string]object
	asked   []string // calls and their keys
	swept   []time.Time

	// before is called before each operation, with its name and key; what it
	// returns is the operation's error. after is called when one has succeeded: the
	// caller gets the error that it returns.
	before, after func(ctx context.Context, operation, key string) error
	// reported changes what the store reports of an object; nil: nothing.
	reported func(store.Object) store.Object
	// lag is for how long lists don't show an object.
	lag time.Duration
}

type object struct {
	content []byte
	store.Object
}

func newMemory() *memory { return &memory{objects: map[string]object{}} }

func (m *memory) operate(ctx context.Context, operation, key string, do func()) error {
	m.mu.Lock()
	m.asked = append(m.asked, operation+" "+key)
	before, after := m.before, m.after
	m.mu.Unlock()
	if before != nil {
		if err := before(ctx, operation, key); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", operation, key, context.Cause(ctx))
	}
	m.mu.Lock()
	do()
	m.mu.Unlock()
	if after != nil {
		return after(ctx, operation, key)
	}
	return nil
}

func (m *memory) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	content, err := io.ReadAll(u.Body)
	if err != nil {
		return store.Object{}, fmt.Errorf("put %s: %w", key, err)
	}
	metadata := maps.Clone(u.Metadata)
	if u.FinalMetadata != nil {
		maps.Copy(metadata, u.FinalMetadata())
	}
	o := object{content, store.Object{Key: key, Size: int64(len(content)), Metadata: metadata}}
	err = m.operate(ctx, "put", key, func() {
		o.Modified = time.Now()
		m.objects[key] = o
		if m.reported != nil {
			o.Object = m.reported(o.Object)
		}
	})
	if err != nil {
		return store.Object{}, err
	}
	return o.Object, nil
}

func (m *memory) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	o, err := m.stat(ctx, "get", key)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(o.content[offset:])), nil
}

func (m *memory) Stat(ctx context.Context, key string) (store.Object, error) {
	o, err := m.stat(ctx, "stat", key)
	return o.Object, err
}

func (m *memory) stat(ctx context.Context, operation, key string) (object, error) {
	var o object
	var found bool
	if err := m.operate(ctx, operation, key, func() { o, found = m.objects[key] }); err != nil {
		return object{}, err
	}
	if !found {
		return object{}, fmt.Errorf("%s %s: %w", operation, key, store.ErrNotFound)
	}
	return o, nil
}

// List yields pages of ten, each of which may fail, without metadata. They show what was there some time before.
func (m *memory) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		keys, shown := m.keys(), time.Now().Add(-m.lag)
		for page := range slices.Chunk(keys, 10) {
			var list []store.Object
			err := m.operate(ctx, "list", prefix, func() {
				for _, key := range page {
					if o, found := m.objects[key]; found && strings.HasPrefix(key, prefix) && (m.lag == 0 || !o.Modified.After(shown)) {
						o.Metadata = nil
						list = append(list, o.Object)
					}
				}
			})
			if err != nil {
				yield(store.Object{}, err)
				return
			}
			for _, o := range list {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

func (m *memory) Delete(ctx context.Context, key string) error {
	return m.operate(ctx, "delete", key, func() { delete(m.objects, key) })
}

func (m *memory) Sweep(ctx context.Context, prefix string, before time.Time, _ func(string) bool) (int, error) {
	return 0, m.operate(ctx, "sweep", prefix, func() { m.swept = append(m.swept, before) })
}

func (m *memory) Close() error { return nil }

// keys are those of all objects, in order.
func (m *memory) keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// count is how often something was asked for.
func (m *memory) count(operation string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, a := range m.asked {
		if strings.HasPrefix(a, operation) {
			n++
		}
	}
	return n
}

// meddle sets what is called before and after operations.
func (m *memory) meddle(before, after func(ctx context.Context, operation, key string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.after = before, after
}

// fail makes one kind of operation fail; "" makes none.
func (m *memory) fail(operation string, err error) {
	m.meddle(func(_ context.Context, o, _ string) error {
		if o == operation {
			return err
		}
		return nil
	}, nil)
}
