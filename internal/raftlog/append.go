// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package raftlog

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Append adds requests to the log of a new data directory, as committed entries: etcd applies them when it
// starts. It returns how many there were, and the index of the last entry. No etcd has run on the directory.
func Append(dataDir string, requests iter.Seq2[[]byte, error]) (count int, last uint64, err error) {
	names, err := Files(Dir(dataDir))
	if err != nil {
		return 0, 0, err
	}
	if len(names) != 1 {
		return 0, 0, fmt.Errorf("%s has %d files, and a new log has one", Dir(dataDir), len(names))
	}
	file, err := os.OpenFile(names[0], os.O_RDWR, 0)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	e, err := readEnd(file)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", names[0], err)
	}
	if _, err := file.Seek(e.at, io.SeekStart); err != nil {
		return 0, 0, err
	}
	e.to = bufio.NewWriterSize(file, 1<<20)
	for data, err := range requests {
		if err != nil {
			return 0, 0, err
		}
		count++
		e.last++
		if err := e.write(Entry, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Term: e.state.Term, Index: &e.last, Data: data}); err != nil {
			return 0, 0, err
		}
	}
	if count == 0 {
		return 0, e.last, nil
	}
	e.state.Commit = &e.last
	if err := e.write(State, &e.state); err != nil {
		return 0, 0, err
	}
	return count, e.last, errors.Join(e.to.Flush(), file.Sync())
}

// end is the end of a log.
type end struct {
	at    int64
	sum   uint32
	last  uint64 // index of the last entry
	state raftpb.HardState
	to    *bufio.Writer
}

// readEnd reads a log that begins with its first entry.
func readEnd(file *os.File) (*end, error) {
	e := &end{}
	from := bufio.NewReaderSize(file, 1<<20)
	for {
		r, size, err := ReadRecord(from, 1<<30)
		if errors.Is(err, ErrNoLog) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch r.Kind {
		case Checksum:
			e.sum = r.Checksum
		case Entry:
			var entry raftpb.Entry
			if err := proto.Unmarshal(r.Data, &entry); err != nil {
				return nil, err
			}
			e.last = entry.GetIndex()
		case State:
			if err := proto.Unmarshal(r.Data, &e.state); err != nil {
				return nil, err
			}
		}
		if r.Kind != Checksum {
			if e.sum = crc32.Update(e.sum, Castagnoli, r.Data); e.sum != r.Checksum {
				return nil, fmt.Errorf("the record at byte %d is damaged", e.at)
			}
		}
		e.at += size
	}
	if e.last == 0 || e.state.GetCommit() != e.last {
		return nil, fmt.Errorf("its last entry is %d, and %d is committed: it is no log of a new data directory", e.last, e.state.GetCommit())
	}
	return e, nil
}

func (e *end) write(kind uint64, message proto.Message) error {
	data, err := proto.Marshal(message)
	if err != nil {
		return err
	}
	e.sum = crc32.Update(e.sum, Castagnoli, data)
	_, err = e.to.Write(Record{kind, e.sum, data}.Frame())
	return err
}
