// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"maps"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// copied state of a member in a snapshot.
type savedState struct {
	ClusterID uint64         `json:"clusterID"`
	Revision  int64          `json:"revision"`
	Data      map[string]int `json:"data"`
}

const (
	pageSize = 4096
	pages    = 2
	stateAt  = 80
)

// encode returns the state as a database with its sha256: the first page is one of bbolt, as
// far as package snapshot reads it.
func (s savedState) encode() []byte {
	file := make([]byte, pages*pageSize)
	put := binary.LittleEndian
	put.PutUint32(file[16:], 0xED0CDAED)
	put.PutUint32(file[20:], 2)
	put.PutUint32(file[24:], pageSize)
	put.PutUint64(file[56:], pages)
	sum := fnv.New64a()
	sum.Write(file[16:72])
	put.PutUint64(file[72:], sum.Sum64())
	copy(file[stateAt:], mustJSON(s))
	trailer := sha256.Sum256(file)
	return append(file, trailer[:]...)
}

// decodeState is the reverse of encode.
func decodeState(file []byte) (savedState, error) {
	var s savedState
	if len(file) != pages*pageSize+etcd.SnapshotTrailer {
		return s, errors.New("the file has another length")
	}
	end := stateAt
	for end < len(file) && file[end] != 0 {
		end++
	}
	return s, json.Unmarshal(file[stateAt:end], &s)
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// saver is a backup operator's client of the members.
type saver struct{ o *operator }

func (s saver) Conn(ep etcd.Endpoint) (snapshot.Conn, error) { return savingWay{way{s.o, ep}}, nil }
func (saver) Retain(map[etcd.Endpoint]bool)                  {}
func (saver) Close()                                         {}

// members makes the client of a process.
func (o *operator) members(*tls.Config, etcd.Credentials) snapshot.Client { return saver{o} }

type savingWay struct{ way }

func (savingWay) Connections() int64 { return 1 }

func (s savingWay) Revision(ctx context.Context) (int64, error) {
	position, err := s.Commits(ctx)
	return position.Revision, err
}

// Snapshot begins to read what the member has applied.
func (s savingWay) Snapshot(ctx context.Context) (snapshot.Stream, int64, error) {
	stream, err := asked(ctx, s.way, "snapshot", false, func(m *member, reply func(*pieces, error)) {
		content := savedState{m.clusterID, m.machine.revision, maps.Clone(m.machine.data)}.encode()
		m.w.backups.taken[digestOf(content)] = content
		reply(&pieces{way: s.way, ctx: ctx, from: m, left: content}, nil)
	})
	if err != nil {
		return nil, 0, err
	}
	return stream, int64(len(stream.left)), nil
}

// pieces is a snapshot that is being sent.
type pieces struct {
	way
	ctx  context.Context
	from *member
	left []byte
}

const pieceSize = 3000

// Next asks the member for the next piece.
func (p *pieces) Next() ([]byte, error) {
	if len(p.left) == 0 {
		return nil, io.EOF
	}
	piece, err := asked(p.ctx, p.way, "piece", false, func(m *member, reply func([]byte, error)) {
		if m != p.from {
			reply(nil, errors.New("the connection broke"))
			return
		}
		piece := p.left[:min(pieceSize, len(p.left))]
		w, n := m.w, m.w.nth("piece")
		switch {
		case w.life.chance(0.01, "flipped piece", n):
			w.narrate("fault", "a piece of a snapshot is damaged on its way")
			piece = flipped(piece, w.life.number("flipped piece", n))
		case w.life.chance(0.01, "short piece", n):
			w.narrate("fault", "a snapshot ends early")
			p.left = p.left[:len(piece)]
		}
		reply(piece, nil)
	})
	if err != nil {
		return nil, err
	}
	p.left = p.left[min(pieceSize, len(p.left)):]
	return piece, nil
}
