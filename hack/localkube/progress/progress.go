// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress reports the progress of a start to the command that waits for it. The
// supervisor writes lines of JSON into a pipe; `up` reads them.
package progress

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrEnded is returned if the cluster's processes ended without a report.
var ErrEnded = errors.New("the cluster's supervisor ended while it started")

type line struct {
	Step   string `json:"step,omitempty"`
	Failed string `json:"failed,omitempty"`
	Ready  bool   `json:"ready,omitempty"`
}

// A Writer reports until the cluster is ready or has failed.
type Writer struct {
	mu sync.Mutex
	w  io.WriteCloser
}

// NewWriter returns a Writer that writes to w and closes it at the end.
func NewWriter(w io.WriteCloser) *Writer { return &Writer{w: w} }

// Step reports that something is up.
func (p *Writer) Step(what string) { p.write(line{Step: what}) }

// Failed reports that the cluster will not come up.
func (p *Writer) Failed(err error) { p.write(line{Failed: err.Error()}) }

// Ready reports that the cluster is up.
func (p *Writer) Ready() { p.write(line{Ready: true}) }

// write ignores errors: without a reader, the keeper ends the cluster.
func (p *Writer) write(l line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	_ = json.NewEncoder(p.w).Encode(l)
	if l.Ready || l.Failed != "" {
		p.w.Close()
		p.w = nil
	}
}

// Read calls step for each step until the cluster is ready (nil) or failed.
func Read(r io.Reader, step func(what string)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("read the supervisor's report %q: %w", lines.Text(), err)
		}
		switch {
		case l.Ready:
			return nil
		case l.Failed != "":
			return errors.New(l.Failed)
		default:
			step(l.Step)
		}
	}
	return errors.Join(ErrEnded, lines.Err())
}
