// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raftlog

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Dir is where a data directory has its write-ahead log.
func Dir(dataDir string) string { return filepath.Join(dataDir, "member", "wal") }

// Files returns the names of the files of a log, the oldest first. Names are numbers of the same
// length. It omits files that etcd prepares.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".wal" {
			names = append(names, filepath.Join(dir, entry.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no write-ahead log in %s", dir)
	}
	return names, nil
}

// Tail is the raft entries of a log after one of them. A member has received them, and may have
// confirmed them to the leader. It may not know that they are committed.
type Tail struct {
	after  uint64
	term   uint64  // of the last entry, or of the one before the tail
	places []place // one for each entry
	files  []*os.File
}

// place is where the record of an entry is.
type place struct {
	file     *os.File
	at, size int64
}

// ReadTail reads the entries after an index. The caller closes the tail, also after an error: it then
// has the entries before the place that can't be read. The etcd of the log may run.
func ReadTail(dataDir string, after uint64) (*Tail, error) {
	t := &Tail{after: after}
	names, err := Files(Dir(dataDir))
	if err != nil {
		return t, err
	}
	first := 0
	for i, name := range names {
		var number, index uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%016x-%016x.wal", &number, &index); err != nil {
			return t, fmt.Errorf("the file %s has a name that etcd does not give", name)
		}
		if index <= after+1 {
			first = i // it begins with an entry that is not later
		}
	}
	sum := uint32(0)
	for i, name := range names[first:] {
		if sum, err = t.open(name, i > 0, sum); err != nil {
			return t, err
		}
	}
	if t.term == 0 && first > 0 {
		_, _ = t.open(names[first-1], false, 0) // the tail is whole without it
	}
	return t, nil
}

// open opens and reads one file.
func (t *Tail) open(name string, follows bool, sum uint32) (uint32, error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	t.files = append(t.files, file)
	if sum, err = t.read(file, follows, sum); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return sum, nil
}

// read reads one file, and returns the checksum at its end. A record that is not complete is the end:
// etcd has not written it to the disk, and confirmed nothing.
func (t *Tail) read(file *os.File, follows bool, sum uint32) (uint32, error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	from := bufio.NewReaderSize(file, 1<<20)
	for at := int64(0); ; {
		r, size, err := ReadRecord(from, uint64(info.Size())) // not negative
		switch {
		case errors.Is(err, ErrNoLog):
			return sum, nil
		case err != nil:
			return 0, err
		case r.Kind == Checksum && follows && r.Checksum != sum:
			return 0, errors.New("it does not continue the file before it")
		case r.Kind == Checksum:
			sum = r.Checksum
		default:
			if next := crc32.Update(sum, Castagnoli, r.Data); next != r.Checksum {
				return sum, nil
			}
			sum = r.Checksum
		}
		if r.Kind == Entry {
			if err := t.add(r.Data, place{file, at, size}); err != nil {
				return 0, err
			}
		}
		at += size
	}
}

// add notes an entry. It replaces those from its index on, as those of a new leader do.
func (t *Tail) add(data []byte, p place) error {
	var entry raftpb.Entry
	if err := proto.Unmarshal(data, &entry); err != nil {
		return fmt.Errorf("the entry at byte %d: %w", p.at, err)
	}
	switch index := entry.GetIndex(); {
	case index < t.after:
	case index == t.after:
		t.term = entry.GetTerm()
	case index > t.Last()+1:
		return fmt.Errorf("the entries from %d to %d are missing", t.Last()+1, index-1)
	default:
		t.places, t.term = append(t.places[:index-t.after-1], p), entry.GetTerm()
	}
	return nil
}

// Last is the index of the last entry. If there is none, it is that after which the tail would begin.
func (t *Tail) Last() uint64 { return t.after + uint64(len(t.places)) }

// LastTerm is the term of the last entry. If there is none, it is that of the entry after which the tail would
// begin; 0 if the log does not have that one.
func (t *Tail) LastTerm() uint64 { return t.term }

// size is the number of bytes of all records.
func (t *Tail) size() (size int64) {
	for _, p := range t.places {
		size += p.size
	}
	return size
}

// records reads the records of the entries.
func (t *Tail) records() io.Reader {
	var parts []io.Reader
	for i := 0; i < len(t.places); {
		p := t.places[i]
		for i++; i < len(t.places) && t.places[i].file == p.file && t.places[i].at == p.at+p.size; i++ {
			p.size += t.places[i].size
		}
		parts = append(parts, io.NewSectionReader(p.file, p.at, p.size))
	}
	return io.MultiReader(parts...)
}

// Close closes the files.
func (t *Tail) Close() error {
	var errs []error
	for _, file := range slices.Backward(t.files) {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
