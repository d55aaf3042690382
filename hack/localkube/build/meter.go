// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// A meter reports the progress of a build and estimates the rest, by this machine's speed so
// far.
type meter struct {
	out io.Writer
	now func() time.Time

	mu         sync.Mutex
	components int // to be built
	built      int
	left       map[string]int64 // cost of the packages that have not begun
	total      int64
	done       int64
	began      time.Time // of the first package
}

func newMeter(out io.Writer, components int) *meter {
	return &meter{out: out, now: time.Now, components: components, left: map[string]int64{}}
}

// expect adds a component's packages. It counts a package once if two components need it in
// the same version. It also counts other versions with the same path once, which is accurate
// enough.
func (m *meter) expect(w work) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, cost := range w {
		if _, known := m.left[path]; known {
			continue
		}
		m.left[path] = cost
		m.total += cost
	}
}

// begun notes that a package's compilation has begun. It returns false for a line that names
// no expected package, or a counted one.
func (m *meter) begun(path string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	cost, expected := m.left[path]
	if !expected {
		return false
	}
	if m.began.IsZero() {
		m.began = m.now()
	}
	m.left[path] = 0
	m.done += cost
	return true
}

// component notes that a component is built.
func (m *meter) component(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.built++
	fmt.Fprintf(m.out, "  %s: built, %d of %d\n", name, m.built, m.components)
}

const (
	// tickEvery is the time between two reports of a long build.
	tickEvery = 20 * time.Second
	// earliest is the share of the work after which the rest can be estimated.
	earliest = 0.03
)

// String describes the progress.
func (m *meter) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total == 0 {
		return "downloading modules"
	}
	share := float64(m.done) / float64(m.total)
	if m.began.IsZero() || share < earliest {
		return fmt.Sprintf("%.0f %% compiled", 100*share)
	}
	rest := time.Duration(float64(m.now().Sub(m.began)) * (1 - share) / share)
	if rest < tickEvery {
		return fmt.Sprintf("%.0f %% compiled, less than %s left", 100*share, tickEvery)
	}
	return fmt.Sprintf("%.0f %% compiled, about %s left on this machine", 100*share, rest.Round(10*time.Second))
}

// run reports until stop is called, which waits for the last report.
func (m *meter) run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	began := m.now()
	tick := time.NewTicker(tickEvery)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(m.out, "  %4.0f s: %s\n", m.now().Sub(began).Seconds(), m)
			}
		}
	}()
	return func() { cancel(); <-ended }
}
