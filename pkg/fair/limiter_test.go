// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// begun lists who has begun, in which order.
type begun struct {
	mu  sync.Mutex
	who []string
}

func (b *begun) add(who string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.who = append(b.who, who)
}

func (b *begun) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.who)
}

func perSecond(n float64) func() float64 { return func() float64 { return n } }

func TestNoSecondHasMoreThanTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b := New(clock.RealClock{}, perSecond(100), 50), &begun{}
		for range 1000 {
			go func() {
				if l.Wait(t.Context()) == nil {
					b.add("")
				}
			}()
		}
		synctest.Wait()
		if n := b.count(); n != 50 {
			t.Errorf("%d began at once, want the burst", n)
		}
		for second := 1; second <= 9; second++ {
			time.Sleep(time.Second)
			synctest.Wait()
			if n, want := b.count(), 50+100*second; n < want-1 || n > want {
				t.Errorf("%d have begun after %d s, want %d", n, second, want)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := b.count(); n != 1000 {
			t.Errorf("%d of 1000 have begun", n)
		}
	})
}

func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b := New(clock.RealClock{}, perSecond(10), 1), &begun{}
		wait := func(namespace string, i int) {
			go func() {
				if l.Wait(In(t.Context(), namespace)) == nil {
					b.add(fmt.Sprint(namespace, i))
				}
			}()
			synctest.Wait()
		}
		for i := range 100 {
			wait("many", i)
		}
		wait("few", 0)
		wait("few", 1)
		time.Sleep(time.Second)
		synctest.Wait()
		want := []string{"many0", "many1", "few0", "many2", "few1", "many3", "many4"}
		if got := b.who[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("in the order %q, want %q", got, want)
		}
	})
}

func TestWhoGivesUpDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, b := New(clock.RealClock{}, perSecond(1), 1), &begun{}
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go func() {
				if err := l.Wait(In(ctx, "gone")); !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that gave up: %v", err)
				}
			}()
		}
		go func() {
			if l.Wait(In(t.Context(), "stays")) == nil {
				b.add("stays")
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if b.count() != 1 {
			t.Error("a caller waits for others that gave up")
		}
		if l.TryWait() {
			t.Error("a turn is taken before its time")
		}
		time.Sleep(time.Second + time.Millisecond)
		if !l.TryWait() {
			t.Error("no turn is left, and nobody waits")
		}
		if err := l.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has given up: %v", err)
		}
	})
}
