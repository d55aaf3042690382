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

// A meter reports how far a build is and estimates the rest, from how fast this machine
// was until now.
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

// expect adds what a component has to do. A package that two of them need in the same
// version is compiled once; others with the same path count once as well, which is near
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

// begun notes that a package's compilation has begun. It reports false for a line that
// names no package which was expected or counted before.
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
	// tickEvery is how often a build that takes long is mentioned.
	tickEvery = 20 * time.Second
	// earliest is how much has to be done before the rest can be estimated.
	earliest = 0.03
)

// String says how far the build is.
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
