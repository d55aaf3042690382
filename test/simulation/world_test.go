// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"
)

// world is everything except the operator. It has one goroutine, which runs one event at a
// time. Requests of the operator's goroutines wait until all of them wait. The world then
// takes them in an order that does not depend on Go's scheduler.
type world struct {
	life  life
	start time.Time
	queue events
	// stirred is true if goroutines of the operator may have work.
	stirred bool

	mu    sync.Mutex
	inbox []*call
	bell  chan struct{}

	tale tale
	told map[string]bool // faults of calls, by name

	api       *apiServer
	nodes     []*node
	addresses map[string]*podRun
	hosts     map[string]string // the pods of URLs
	nextIP    int
	disks     map[string]*disk
	payloads  []payload
	histories map[uint64]*history
	clients   []*client
	operators []*operator
	backups   *backups       // nil: this life has none
	imports   *imports       // nil: this life has none
	cuts      map[string]int // pairs of places without a link
	linked    map[string]time.Time
	checks    checks
	skies     []weather
	faults    []string // that happened
	struck    int      // number of times a fault began, or a call failed
	lags      map[string]time.Duration
	old       map[string]int
	view      int64 // the version that a cache of the API server shows; 0: see old
	local     bool
	// createsCRD is true if the operator registers its resource itself. Reading and writing
	// the long definition takes as long as all else in a short life.
	createsCRD   bool
	pair         bool               // of operators
	many         bool               // faults
	storm        int                // the number of the current one
	aim          *aim               // nil: this life has none
	copyTakes    time.Duration      // of a database, to a member that needs a snapshot
	lies         bool               // the tag of an image
	wiped        bool               // a node's fault lost a voter's data
	rolledBack   bool               // a disk: raft promises nothing any more
	rejecting    map[[2]uint64]bool // members that reject entries of others, while that is on its way
	wentBack     bool               // all disks, behind the record
	progressed   time.Time          // the last edit of more than a status
	reconfigured time.Time          // the last change of the membership
	opened       bool               // the client Service has existed
	lasting      int                // faults that are not over
	disturbed    time.Time          // when a fault began or ended last
	underWay     int                // copies of the database
	edited       time.Time          // the last edit of the spec
	largest      int                // size that an edit had to do with
	adviser      adviser
	counters     map[string]int
}

// after schedules an event.
func (w *world) after(d time.Duration, do func()) { w.queue.push(w.elapsed()+d, do) }

// every schedules a repeated event.
func (w *world) every(first, period time.Duration, do func()) {
	w.after(first, func() {
		do()
		w.every(period, period, do)
	})
}

// elapsed is the age of the world.
func (w *world) elapsed() time.Duration { return time.Since(w.start) }

// call is a request of the operator to the world.
type call struct {
	actor *operator
	key   string // caller and request; the n-th of the same has the same number in each run
	do    func(reply func(any))
	route func() // how it gets there; nil: through the network
	reply chan any
}

// ask passes a call to the world and waits for its answer.
func (w *world) ask(ctx context.Context, c *call) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.reply = make(chan any, 1)
	w.mu.Lock()
	w.inbox = append(w.inbox, c)
	w.mu.Unlock()
	select {
	case w.bell <- struct{}{}:
	default:
	}
	select {
	case r := <-c.reply:
		return r, nil
	case <-c.actor.dead:
		return nil, errors.New("this process has crashed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer gives a call its answer, which wakes a goroutine of the operator.
func (w *world) answer(c *call, r any) {
	select {
	case c.reply <- r:
		w.stirred = true
	default:
	}
}

// admit takes the calls that have arrived.
func (w *world) admit() {
	w.mu.Lock()
	calls := w.inbox
	w.inbox = nil
	w.mu.Unlock()
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.key, b.key) })
	for _, c := range calls {
		// Go's scheduler decides whether a process still sends a request at the moment of its
		// crash, so such a request must not count.
		if !c.actor.ended {
			w.take(c)
		}
	}
}

// run advances time until done returns true, or until a time.
func (w *world) run(until time.Time, done func() bool) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !done() {
		if w.stirred {
			synctest.Wait()
			w.stirred = false
		}
		w.admit()
		next := until.Sub(w.start)
		if w.queue.Len() > 0 {
			next = min(next, w.queue.first())
		}
		if now := w.elapsed(); next > now {
			timer.Reset(next - now)
			select {
			case <-w.bell:
			case <-timer.C:
			}
			w.stirred = true // timers of others may have ended at the same moment
			continue
		}
		if next == until.Sub(w.start) {
			return
		}
		w.queue.pop()()
	}
}

// life is what a seed decides.
type life struct {
	seed uint64
	// backups is true if the operators of backups and restores take part.
	backups bool
	// imports is true if the cluster imports a running etcd.
	imports bool
	// storms is the number of storms; 0: one, as in most lives. Each ends with a cluster that is as
	// specified, or with the life.
	storms int
	// aimed is true if the life has an aim: as many seeds in a row as there are aims have each.
	aimed bool
	// without are faults left out of this life, to shrink a failure.
	without map[string]bool
}

// number returns a number that depends only on the seed and the words.
func (l life) number(words ...any) uint64 {
	h := l.seed*0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019
	for _, word := range words {
		switch word := word.(type) {
		case string:
			for i := range len(word) {
				h = (h ^ uint64(word[i])) * 0x100000001b3
			}
		case int:
			h = (h ^ uint64(word)) * 0x100000001b3 // any number will do
		case uint64:
			h = (h ^ word ^ word>>32) * 0x100000001b3
		default:
			panic("no number of this type") // the value would escape to the heap
		}
		h = (h ^ 0xff) * 0x100000001b3
	}
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// chance returns true with a probability.
func (l life) chance(p float64, words ...any) bool {
	return float64(l.number(words...)>>11)/(1<<53) < p
}

// between returns a duration between two others.
func (l life) between(least, most time.Duration, words ...any) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(l.number(words...)%uint64(most-least))
}

// nth counts occurrences of a key.
func (w *world) nth(words ...string) int {
	key := strings.Join(words, " ")
	w.counters[key]++
	return w.counters[key]
}

// tale is what happened, in order.
type tale struct {
	lines []string
	hash  uint64 // of everything, including what is too much for people
}

// narrate adds a line for people.
func (w *world) narrate(actor, format string, args ...any) {
	line := fmt.Sprintf("%9.3fs %-12s %s", w.elapsed().Seconds(), actor, fmt.Sprintf(format, args...))
	w.tale.lines = append(w.tale.lines, line)
	w.note(line)
}

// note adds a line that must be the same in each run.
func (w *world) note(line string) {
	for i := range len(line) {
		w.tale.hash = (w.tale.hash ^ uint64(line[i])) * 0x100000001b3
	}
	if traceAll {
		w.tale.lines = append(w.tale.lines, fmt.Sprintf("  %.6f %s", w.elapsed().Seconds(), line))
	}
}
