// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"context"
	"crypto/sha256"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// A Stream is a member's answer to a request for a snapshot.
type Stream struct {
	Pieces []*etcdserverpb.SnapshotResponse
	// Err ends the stream after the pieces.
	Err error
	// Stall keeps the stream open after the pieces.
	Stall bool
}

// pieceSize is etcd's (snapshotSendBufferSize in server/etcdserver/api/v3rpc/maintenance.go).
const pieceSize = 32 << 10

// StreamOf returns the stream of a database as etcd sends it.
func StreamOf(database []byte) *Stream {
	stream, sum := &Stream{}, sha256.Sum256(database)
	for rest := database; len(rest) > 0; {
		n := min(len(rest), pieceSize)
		stream.Pieces = append(stream.Pieces, &etcdserverpb.SnapshotResponse{
			Blob: rest[:n], RemainingBytes: uint64(len(rest) - n), // not negative
		})
		rest = rest[n:]
	}
	stream.Pieces = append(stream.Pieces, &etcdserverpb.SnapshotResponse{Blob: sum[:]})
	return stream
}

// keys is apart because a member's methods are those of the cluster's service.
type keys struct {
	etcdserverpb.UnimplementedKVServer
	m *Member
}

// Range returns the revision and no keys.
func (s keys) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if err := s.m.hang(ctx); err != nil {
		return nil, err
	}
	switch {
	case !r.Serializable && s.m.Status.GetIsLearner():
		return nil, rpctypes.ErrGRPCNotSupportedForLearner
	case !r.Serializable && s.m.NoQuorum != nil:
		return nil, s.m.NoQuorum
	}
	return &etcdserverpb.RangeResponse{Header: s.m.Status.GetHeader()}, nil
}

func (s maintenance) Snapshot(_ *etcdserverpb.SnapshotRequest, server etcdserverpb.Maintenance_SnapshotServer) error {
	if err := s.m.change("snapshot"); err != nil {
		return err
	}
	if s.m.Snapshot == nil {
		return nil
	}
	for _, piece := range s.m.Snapshot.Pieces {
		if err := server.Send(piece); err != nil {
			return err
		}
	}
	if s.m.Snapshot.Stall {
		<-server.Context().Done()
	}
	return s.m.Snapshot.Err
}
