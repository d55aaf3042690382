// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

const storePlace = "store"

// bucket is a model of a store. It keeps the contract of package store, unless it lies: then
// it confirms what it does not have.
type bucket struct {
	w       *world
	objects map[string]*object
	past    []listing // of the keys, for lists that lag
	skies   []weather
	lag     time.Duration
	// hangs is true while the store takes requests and answers none. deaf is true if not even
	// the end of a context ends them, like a system call on a volume without its server.
	hangs, deaf bool
}

// object is a stored object.
type object struct {
	store.Object
	content []byte
	// lie is true if the store has confirmed other content, or has changed it since.
	lie bool
}

// listing is the objects at some time.
type listing struct {
	at   time.Time
	keys map[string]*object
}

var (
	errNoStore   = errors.New("dial tcp: i/o timeout")
	errStoreDown = errors.New("503 Slow Down")
)

func (b *bucket) changed() {
	b.past = append(b.past, listing{time.Now(), maps.Clone(b.objects)})
}

// seen returns the objects that a list shows.
func (b *bucket) seen() map[string]*object {
	seen := map[string]*object{}
	for _, l := range b.past {
		if time.Since(l.at) >= b.lag {
			seen = l.keys
		}
	}
	return seen
}

// fault is the fault of the n-th request of a kind.
func (b *bucket) fault(key string, n int) string {
	w, at := b.w, b.w.elapsed()
	for i, sky := range b.skies {
		if at < sky.from || at > sky.to || !w.life.chance(sky.p, "store", i, key, n) {
			continue
		}
		kind := sky.kinds[w.life.number("store kind", i, key, n)%uint64(len(sky.kinds))]
		puts := strings.Contains(key, " put ")
		if !puts && (strings.HasPrefix(kind, "lie") || kind == "left") {
			continue
		}
		id := fmt.Sprintf("%s #%d: %s", key, n, kind)
		if w.life.without[id] {
			continue
		}
		w.happened(id)
		w.narrate("fault", "%s", id)
		return kind
	}
	return ""
}

// way to the store of one process.
type shelfOf struct {
	b *bucket
	o *operator
}

// ask makes a request. do changes the bucket, and returns the result.
func (s shelfOf) ask(ctx context.Context, what, key string, do func(fault string) any) (any, error) {
	w := s.b.w
	c := &call{actor: s.o, key: s.o.name + " store " + what + " " + key}
	c.route = func() {
		n := w.nth(c.key)
		takes := 5*time.Millisecond + w.life.between(0, 40*time.Millisecond, "latency", c.key, n)
		if what == "put" && w.life.chance(0.3, "slow", c.key, n) {
			takes = w.life.between(time.Second, 30*time.Second, "slow put", c.key, n)
		}
		fault := s.b.fault(c.key, n)
		w.after(takes, func() { s.carry(c, fault, do) })
	}
	waits := ctx
	if s.b.deaf && s.b.hangs {
		waits = context.WithoutCancel(ctx)
	}
	return w.ask(waits, c)
}

func (s shelfOf) carry(c *call, fault string, do func(fault string) any) {
	w, o := s.b.w, s.o
	if o.ended {
		return
	}
	if o.frozen || s.b.hangs || !w.reachable(o.place, storePlace) {
		w.after(500*time.Millisecond, func() { s.carry(c, fault, do) })
		return
	}
	note := func(r any) any {
		w.note(fmt.Sprintf("%s %T", c.key, r))
		return r
	}
	switch fault {
	case "lost":
		w.after(10*time.Second, func() { w.answer(c, errNoStore) })
	case "done":
		note(do(""))
		w.after(10*time.Second, func() { w.answer(c, errNoStore) })
	case "late":
		w.after(w.life.between(10*time.Second, 4*time.Minute, "late", c.key), func() { note(do("")) })
	case "down":
		w.answer(c, errStoreDown)
	case "crash before":
		o.crash()
	case "crash after":
		note(do(""))
		o.crash()
	default:
		w.answer(c, note(do(fault)))
	}
}

func (s shelfOf) failed(what, key string, err error) error {
	return fmt.Errorf("%s bucket/%s: %w", what, key, err)
}

// Put stores an object.
func (s shelfOf) Put(ctx context.Context, key string, u store.Upload) (store.Object, error) {
	content, err := io.ReadAll(u.Body)
	if err != nil {
		return store.Object{}, s.failed("upload", key, err)
	}
	metadata := maps.Clone(u.Metadata)
	if u.FinalMetadata != nil {
		maps.Copy(metadata, u.FinalMetadata())
	}
	got, err := s.ask(ctx, "put", key, func(fault string) any { return s.b.put(key, content, metadata, fault) })
	switch got := got.(type) {
	case store.Object:
		return got, nil
	case error:
		return store.Object{}, s.failed("upload", key, got)
	}
	// Nobody knows whether the store has it, or will have it.
	return store.Object{}, s.failed("upload", key, errors.Join(store.ErrLeft, err))
}

// put stores an object.
func (b *bucket) put(key string, content []byte, metadata map[string]string, fault string) any {
	o := &object{Object: store.Object{Key: key, Size: int64(len(content)), Modified: time.Now(), Metadata: metadata}, content: content}
	told := o.Object
	switch fault {
	case "lie flip":
		o.content, o.lie = flipped(content, b.w.life.number("flip", key)), true
	case "lie truncate":
		o.content, o.lie = content[:len(content)/2], true
		o.Size = int64(len(o.content))
	case "lie lose":
		b.w.narrate("store", "confirms %s, and does not have it", key)
		b.w.backups.lost[key] = true
		return told
	case "left":
		o.content = content[:len(content)/2]
		o.Size = int64(len(o.content))
	}
	b.objects[key] = o
	delete(b.w.backups.lost, key)
	b.changed()
	b.w.narrate("store", "has %s (%d bytes)", key, o.Size)
	if fault == "left" {
		return fmt.Errorf("the connection broke: %w", store.ErrLeft)
	}
	return told
}

func flipped(content []byte, n uint64) []byte {
	content = bytes.Clone(content)
	content[n%uint64(len(content))] ^= 1 << (n % 7)
	return content
}

// Get reads an object.
func (s shelfOf) Get(ctx context.Context, key string, offset int64) (io.ReadCloser, error) {
	got, err := s.ask(ctx, "get", key, func(string) any {
		if o := s.b.objects[key]; o != nil {
			if offset > int64(len(o.content)) {
				return errors.New("416 the range begins behind the end")
			}
			if offset == 0 && s.o.kin == &s.b.w.backups.restorers {
				s.b.w.backups.read[digestOf(o.content)] = true
			}
			return o.content[offset:]
		}
		return store.ErrNotFound
	})
	switch got := got.(type) {
	case []byte:
		return io.NopCloser(bytes.NewReader(got)), nil
	case error:
		err = got
	}
	return nil, s.failed("read", key, err)
}

// Stat returns an object's properties.
func (s shelfOf) Stat(ctx context.Context, key string) (store.Object, error) {
	got, err := s.ask(ctx, "stat", key, func(string) any {
		if o := s.b.objects[key]; o != nil {
			return o.Object
		}
		return store.ErrNotFound
	})
	switch got := got.(type) {
	case store.Object:
		return got, nil
	case error:
		err = got
	}
	return store.Object{}, s.failed("look at", key, err)
}

// List lists objects, as of some time ago where lists lag.
func (s shelfOf) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		got, err := s.ask(ctx, "list", prefix, func(string) any {
			var list []store.Object
			seen := s.b.seen()
			for _, key := range slices.Sorted(maps.Keys(seen)) {
				if strings.HasPrefix(key, prefix) {
					object := seen[key].Object
					object.Metadata = nil
					list = append(list, object)
				}
			}
			return list
		})
		list, ok := got.([]store.Object)
		if !ok {
			if e, is := got.(error); is {
				err = e
			}
			yield(store.Object{}, s.failed("list", prefix, err))
			return
		}
		for _, object := range list {
			if !yield(object, nil) {
				return
			}
		}
	}
}

// Delete deletes an object.
func (s shelfOf) Delete(ctx context.Context, key string) error {
	got, err := s.ask(ctx, "delete", key, func(string) any {
		s.b.w.backups.deletes(s.o, key)
		if s.b.objects[key] != nil {
			delete(s.b.objects, key)
			s.b.changed()
		}
		return true
	})
	if e, is := got.(error); is {
		err = e
	}
	if err != nil {
		return s.failed("delete", key, err)
	}
	return nil
}

// Sweep has nothing to remove: the model shows no part of an upload.
func (s shelfOf) Sweep(context.Context, string, time.Time, func(string) bool) (int, error) {
	return 0, nil
}

// Close does nothing.
func (s shelfOf) Close() error { return nil }

// at opens a location in the bucket for a process.
func (b *bucket) at(o *operator, path string) (*location.Location, error) {
	name, key, ok := strings.Cut(path, "/")
	if !ok {
		return nil, fmt.Errorf("%w: %q is no path", location.ErrSpec, path)
	}
	return &location.Location{Store: shelfOf{b, o}, Bucket: name, Key: key}, nil
}
