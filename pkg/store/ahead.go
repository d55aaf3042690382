// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

const (
	// aheadBytes bounds the memory for objects that were read ahead, but for a larger object
	// alone.
	aheadBytes = 32 << 20
	// aheadObjects is how many objects are read at once. It hides the latency of a store with
	// many small objects.
	aheadObjects = 16
)

// ReadAhead yields the contents of objects in their order, and reads some of them ahead at the
// same time. read returns the content of one object, whose Size it must not exceed. After an
// error, ReadAhead ends. No goroutine of it is left when it returns.
func ReadAhead(ctx context.Context, objects []Object, read func(context.Context, Object) ([]byte, error)) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var reading sync.WaitGroup
		defer reading.Wait()
		defer cancel()
		memory := semaphore.NewWeighted(aheadBytes)
		queue := make(chan chan content, aheadObjects)
		reading.Go(func() {
			defer close(queue)
			for _, object := range objects {
				weight := min(max(object.Size, 1), aheadBytes)
				if memory.Acquire(ctx, weight) != nil {
					return
				}
				result := make(chan content, 1)
				select {
				case queue <- result:
				case <-ctx.Done():
					return
				}
				reading.Go(func() {
					text, err := watchdog.GuardValue(func() ([]byte, error) { return read(ctx, object) })
					result <- content{text, err, weight}
				})
			}
		})
		for result := range queue {
			c := <-result
			if !yield(c.text, c.err) || c.err != nil {
				return
			}
			memory.Release(c.weight)
		}
	}
}

// content is what came of reading an object.
type content struct {
	text   []byte
	err    error
	weight int64
}
