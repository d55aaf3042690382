// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mergelog merges logs of several containers by time. It knows the form in which
// the kubelet gives them: each line begins with its time and a space.
package mergelog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Source is the log of one container.
type Source struct {
	Name  string
	Lines io.Reader
}

// line is one line of a log.
type line struct {
	at   time.Time
	text string
}

// reader reads the lines of a source.
type reader struct {
	name   string
	buffer *bufio.Reader
	last   time.Time
	next   line
}

func newReader(s Source) *reader { return &reader{name: s.Name, buffer: bufio.NewReader(s.Lines)} }

// read returns the next line. What has no time of its own has that of the line before.
func (r *reader) read() (line, error) {
	text, err := r.buffer.ReadString('\n')
	if text == "" {
		return line{}, err
	}
	text = strings.TrimSuffix(text, "\n")
	if stamp, _, ok := strings.Cut(text, " "); ok {
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			r.last = at
		}
	}
	return line{r.last, text}, nil
}

// Merge writes all lines of sources that end, by time. Lines of one source keep their order. A source
// that fails ends, and hides no line of another one.
func Merge(ctx context.Context, out io.Writer, sources []Source) error {
	width := widest(sources)
	var open []*reader
	var failures []error
	for _, s := range sources {
		r := newReader(s)
		next, err := r.read()
		switch {
		case err == nil:
			r.next = next
			open = append(open, r)
		case !errors.Is(err, io.EOF):
			failures = append(failures, fmt.Errorf("log of %s: %w", s.Name, err))
		}
	}
	for len(open) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		first := 0
		for i, r := range open {
			if r.next.at.Before(open[first].next.at) {
				first = i
			}
		}
		r := open[first]
		if err := write(out, width, r.name, r.next.text); err != nil {
			return err
		}
		next, err := r.read()
		if err == nil {
			r.next = next
			continue
		}
		open = append(open[:first:first], open[first+1:]...)
		if !errors.Is(err, io.EOF) {
			failures = append(failures, fmt.Errorf("log of %s: %w", r.name, err))
		}
	}
	return errors.Join(failures...)
}

// Follow writes lines as they come until all sources end. It does not sort them by time: an
// earlier one may still be on its way. It calls ended for each source that ends: its silence would
// look like that of a member with nothing to say.
func Follow(ctx context.Context, out io.Writer, sources []Source, ended func(name string)) error {
	width := widest(sources)
	type named struct {
		name string
		line line
		last bool
	}
	lines := make(chan named)
	failures := make([]error, len(sources))
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	for i, s := range sources {
		reading.Go(func() {
			for r := newReader(s); ; {
				next, err := r.read()
				if err != nil && !errors.Is(err, io.EOF) {
					failures[i] = fmt.Errorf("log of %s: %w", s.Name, err)
				}
				select {
				case lines <- named{s.Name, next, err != nil}:
				case <-ctx.Done():
					return
				}
				if err != nil {
					return
				}
			}
		})
	}
	go func() {
		reading.Wait()
		close(lines)
	}()
	defer stop()
	for l := range lines {
		if l.last {
			ended(l.name)
			continue
		}
		if err := write(out, width, l.name, l.line.text); err != nil {
			return err
		}
	}
	return errors.Join(failures...)
}

func widest(sources []Source) int {
	width := 0
	for _, s := range sources {
		width = max(width, len(s.Name))
	}
	return width
}

func write(out io.Writer, width int, name, text string) error {
	_, err := fmt.Fprintf(out, "%-*s  %s\n", width, name, text)
	return err
}
