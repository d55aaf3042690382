// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair shares a limited rate, or a limited number of slots, between namespaces. A namespace
// with a thousand objects must not delay the one object of another namespace.
package fair

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Limiter limits how often something begins. While more callers wait than the rate allows,
// namespaces take turns, and callers of one namespace are served in their order.
type Limiter struct {
	clock clock.Clock
	rate  func() float64
	burst float64

	mu     sync.Mutex
	tokens float64
	at     time.Time // when tokens was right
	queue  queue
	// idle ends the goroutine that serves those who wait; nil: there is none.
	idle chan struct{}
}

// New returns a Limiter that lets rate callers begin in a second, and burst at once after a
// pause. The rate may change.
func New(clk clock.Clock, rate func() float64, burst int) *Limiter {
	return &Limiter{
		clock: clk, rate: rate, burst: float64(burst),
		tokens: float64(burst), at: clk.Now(), queue: newQueue(),
	}
}

// Wait returns when the caller may begin, or the error of the context that ended before. The
// context names the namespace; see In.
func (l *Limiter) Wait(ctx context.Context) error { return pass(ctx, l) }

// WaitAlways is Wait for a caller without a context.
func (l *Limiter) WaitAlways() {
	if turn := l.enter(""); turn != nil {
		<-turn
	}
}

// enter returns the channel that closes when the caller may begin; nil: at once.
func (l *Limiter) enter(namespace string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.empty() && l.take() == 0 {
		return nil
	}
	turn := l.queue.add(namespace)
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.serve(l.idle)
	}
	return turn
}

// TryWait takes a turn only if nobody has to wait for it.
func (l *Limiter) TryWait() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.empty() && l.take() == 0
}

// take takes a token and returns 0, or returns how long the next one needs.
func (l *Limiter) take() time.Duration {
	now, rate := l.clock.Now(), l.rate()
	l.tokens = min(l.burst, l.tokens+max(0, now.Sub(l.at).Seconds())*rate)
	l.at = now
	if l.tokens < 1 {
		// A time that is rounded down would end just before the token is there.
		return time.Duration((1-l.tokens)/rate*float64(time.Second)) + time.Microsecond
	}
	l.tokens--
	return 0
}

// serve lets callers begin until none waits.
func (l *Limiter) serve(idle chan struct{}) {
	for {
		wait := l.serveOne(idle)
		if wait == 0 {
			continue
		}
		timer := l.clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-idle:
			timer.Stop()
			return
		}
	}
}

// serveOne lets one caller begin, or returns the time until it may. The time has no end if
// nobody waits any more.
func (l *Limiter) serveOne(idle chan struct{}) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle != idle {
		return math.MaxInt64 // it is closed
	}
	if wait := l.take(); wait > 0 {
		return wait
	}
	close(l.queue.next())
	l.endIfIdle()
	return 0
}

func (l *Limiter) endIfIdle() {
	if l.queue.empty() {
		close(l.idle)
		l.idle = nil
	}
}

// leave removes a caller who no longer waits.
func (l *Limiter) leave(namespace string, turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.leave(namespace, turn) {
		l.endIfIdle()
	}
}

type key struct{}

// In returns a context of work in a namespace. Work without one shares the namespace "".
func In(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, key{}, namespace)
}

func namespaceOf(ctx context.Context) string {
	namespace, _ := ctx.Value(key{}).(string)
	return namespace
}
