// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"io"
	"slices"
	"testing"
)

func TestReportArrives(t *testing.T) {
	for name, c := range map[string]struct {
		report func(*Writer)
		steps  []string
		err    string
	}{
		"ready":           {func(w *Writer) { w.Step("etcd"); w.Step("nodes"); w.Ready() }, []string{"etcd", "nodes"}, ""},
		"failed":          {func(w *Writer) { w.Step("etcd"); w.Failed(errors.New("two\nlines")) }, []string{"etcd"}, "two\nlines"},
		"nothing after":   {func(w *Writer) { w.Ready(); w.Failed(io.EOF); w.Step("late") }, nil, ""},
		"ended, no word":  {func(w *Writer) { w.Step("etcd"); w.w.Close() }, []string{"etcd"}, ErrEnded.Error()},
		"ended at once":   {func(w *Writer) { w.w.Close() }, nil, ErrEnded.Error()},
		"failed, nothing": {func(w *Writer) { w.Failed(errors.New("no cgroup")) }, nil, "no cgroup"},
	} {
		t.Run(name, func(t *testing.T) {
			r, pipe := io.Pipe()
			go c.report(NewWriter(pipe))
			var steps []string
			err := Read(r, func(step string) { steps = append(steps, step) })
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.err || !slices.Equal(steps, c.steps) {
				t.Errorf("got %q, %q, want %q, %q", steps, got, c.steps, c.err)
			}
		})
	}
}
