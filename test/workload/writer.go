// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A Conn is one client's connection to etcd.
type Conn interface {
	Put(ctx context.Context, key, val string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error)
	Close() error
}

// Config says how a Writer writes.
type Config struct {
	// Dial makes a connection, again after each failed write: a connection through a Service
	// stays with its first member, and would hang for long when that member's node is gone.
	Dial func(context.Context) (Conn, error)
	// Prefix of all keys.
	Prefix string
	// Clients that write at the same time, each its own keys. Default 3.
	Clients int
	// Pace is the time between two writes of one client. Default 10 ms.
	Pace time.Duration
	// Timeout of one write. Default 2 s: longer than an election takes.
	Timeout time.Duration
}

// A Writer writes sequentially numbered keys until it is stopped.
type Writer struct {
	cfg  Config
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	history History
}

// Start starts to write. The Writer must be stopped; it also stops when ctx ends.
func Start(ctx context.Context, cfg Config) *Writer {
	if cfg.Clients == 0 {
		cfg.Clients = 3
	}
	if cfg.Pace == 0 {
		cfg.Pace = 10 * time.Millisecond
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &Writer{cfg: cfg, stop: cancel, history: History{Prefix: cfg.Prefix, Start: time.Now()}}
	for client := range cfg.Clients {
		w.done.Go(func() { w.run(ctx, client) })
	}
	return w
}

// Stop ends the writes and returns what was done. It may be called again.
func (w *Writer) Stop() *History {
	w.stop()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.history.End.IsZero() {
		w.history.End = time.Now()
	}
	return &w.history
}

// Acked is the number of acknowledged writes up to now.
func (w *Writer) Acked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.history.Acks)
}

func (w *Writer) run(ctx context.Context, client int) {
	var conn Conn
	hangUp := func() {
		if conn != nil {
			_ = conn.Close() // nothing depends on an abandoned connection
			conn = nil
		}
	}
	defer hangUp()
	pace := time.NewTicker(w.cfg.Pace)
	defer pace.Stop()
	for seq := 0; ; seq++ {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		err := func() error {
			if conn == nil {
				dialled, err := w.cfg.Dial(ctx)
				if err != nil { // what came with it may be a nil pointer in an interface
					return fmt.Errorf("dial: %w", err)
				}
				conn = dialled
			}
			return w.write(ctx, conn, client, seq)
		}()
		if err != nil && ctx.Err() == nil {
			w.fail(err)
			hangUp()
		}
	}
}

// write writes one key. It writes each key once: after a failure the outcome is unknown, so it
// continues with the next number.
func (w *Writer) write(ctx context.Context, conn Conn, client, seq int) error {
	// A running write may finish after Stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Timeout)
	defer cancel()
	key := fmt.Sprintf("%s%d/%08d", w.cfg.Prefix, client, seq)
	value := fmt.Sprintf("value %d of client %d", seq, client)
	resp, err := conn.Put(ctx, key, value)
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Acks = append(w.history.Acks, Ack{Client: client, Key: key, Value: value, Revision: resp.Header.Revision, At: time.Now()})
	return nil
}

func (w *Writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Failed++
	w.history.Failure = err.Error()
}
