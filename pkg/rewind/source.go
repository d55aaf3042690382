// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewind

import (
	"fmt"
	"io"
	"os"
)

// source is a file with a snapshot, and segments of a log after it.
type source struct {
	file       *os.File
	size, ends int64 // of the snapshot, and of the file
}

// open opens a file; a size of -1 is that of the whole file.
func open(name string, size int64) (*source, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open the snapshot: %w", err)
	}
	info, err := file.Stat()
	if err == nil && size > info.Size() {
		err = fmt.Errorf("it has %d bytes, and its snapshot alone %d", info.Size(), size)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("look at the snapshot: %w", err)
	}
	s := &source{file, size, info.Size()}
	if size < 0 {
		s.size = s.ends
	}
	return s, nil
}

func (s *source) close() { _ = s.file.Close() } // it was only read

func (s *source) snapshot() *io.SectionReader { return io.NewSectionReader(s.file, 0, s.size) }

func (s *source) hasLog() bool { return s.size < s.ends }

func (s *source) log() io.ReadSeeker { return io.NewSectionReader(s.file, s.size, s.ends-s.size) }
