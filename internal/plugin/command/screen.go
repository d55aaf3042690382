// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"
)

// screen shows frames: one in the place of the other on a terminal, else one after the
// other where something has changed.
type screen struct {
	out      io.Writer
	terminal bool
	last     []byte
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	return &screen{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))} // a file's descriptor fits
}

func (s *screen) show(frame []byte) {
	if s.terminal {
		// Each line is cleared behind its end, and then what is below: that flickers
		// less than to clear all first.
		frame = bytes.ReplaceAll(frame, []byte("\n"), []byte("\x1b[K\n"))
		_, _ = s.out.Write(append([]byte("\x1b[H"), append(frame, "\x1b[J"...)...))
		return
	}
	if bytes.Equal(frame, s.last) {
		return
	}
	if s.last != nil {
		_, _ = io.WriteString(s.out, "\n")
	}
	_, _ = s.out.Write(frame)
	s.last = bytes.Clone(frame)
}
