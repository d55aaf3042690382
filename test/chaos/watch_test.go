//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// written is a value, and the revision that wrote it.
type written struct {
	value    string
	revision int64
}

// watched is the events that one client's watch of all keys has received. The watch resumes
// after each break.
type watched struct {
	id     uint64 // of the cluster
	mu     sync.Mutex
	seen   map[string]written // the last of each key
	next   int64              // revision from which it resumes
	breaks int
	broken error // violations by the watch
}

func newWatched(id uint64) *watched { return &watched{id: id, seen: map[string]written{}, next: 1} }

func (w *watched) follow(ctx context.Context, dial func() (*clientv3.Client, error)) {
	for ctx.Err() == nil {
		client, err := dial()
		if err == nil {
			w.once(ctx, client)
			_ = client.Close()
			w.mu.Lock()
			w.breaks++
			w.mu.Unlock()
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

func (w *watched) once(ctx context.Context, client *clientv3.Client) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	stream := client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(w.next), clientv3.WithProgressNotify())
	for {
		select {
		case resp, ok := <-stream:
			if !ok || resp.Err() != nil || resp.Header.ClusterId != w.id {
				return
			}
			w.take(resp)
		case <-time.After(10 * time.Second): // a hanging member is silent
			return
		}
	}
}

func (w *watched) take(resp clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range resp.Events {
		revision := e.Kv.ModRevision
		if revision < w.next && w.broken == nil {
			w.broken = fmt.Errorf("a watch from revision %d brought revision %d of %s", w.next, revision, e.Kv.Key)
		}
		w.seen[string(e.Kv.Key)] = written{string(e.Kv.Value), revision}
	}
	if len(resp.Events) > 0 {
		w.next = resp.Events[len(resp.Events)-1].Kv.ModRevision + 1
	}
}

// upTo returns the revision up to which the watch is complete.
func (w *watched) upTo() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.next - 1
}

func (w *watched) broke() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.breaks
}

// filled counts the keys that fill a database, according to the watch.
func (w *watched) filled() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for key, is := range w.seen {
		if strings.HasPrefix(key, fillPrefix) && is.value != "" {
			count++
		}
	}
	return count
}

// check compares the watch's last value of each key with the cluster's.
func (w *watched) check(now map[string]written) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return w.broken
	}
	for key, is := range now {
		if seen := w.seen[key]; seen != is {
			return fmt.Errorf("the watch says that %s is %+v, and it is %+v", key, seen, is)
		}
	}
	for key, seen := range w.seen {
		if _, there := now[key]; !there && seen.value != "" {
			return fmt.Errorf("the watch says that %s is %+v, and it is not there", key, seen)
		}
	}
	return nil
}
