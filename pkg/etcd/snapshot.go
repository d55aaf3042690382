// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// SnapshotTrailer is the length in bytes of the sha256 that follows the database in a
// snapshot.
const SnapshotTrailer = 32

// Revision returns the revision of the data by a linearizable read: the member holds all
// writes that were acknowledged before the call. It fails without a quorum.
func (c *Conn) Revision(ctx context.Context) (int64, error) {
	p, err := c.position(ctx)
	return p.Revision, err
}

// Snapshot is the stream of a member's database, followed by its sha256 of SnapshotTrailer
// bytes.
type Snapshot struct {
	// Size in bytes, with the trailer.
	Size int64
	// StorageVersion is the version of the database's layout, such as 3.6.0;
	// empty before etcd 3.6.
	StorageVersion string

	url    string
	ctx    context.Context // of the stream
	stream etcdserverpb.Maintenance_SnapshotClient
	first  *etcdserverpb.SnapshotResponse
}

// Snapshot opens the stream of the member's database as of the call's arrival, and waits for
// its beginning. The stream ends with ctx. The caller must end ctx unless it reads the stream
// to its end.
//
// etcd's client does not restart the stream: it only retries streams that ask for it
// (clientv3.withMax), and this one does not.
func (c *Conn) Snapshot(ctx context.Context) (*Snapshot, error) {
	stream, err := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	var first *etcdserverpb.SnapshotResponse
	if err == nil {
		first, err = stream.Recv()
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // an empty stream
		}
		return nil, fmt.Errorf("snapshot from %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return &Snapshot{
		Size:           int64(len(first.GetBlob())) + int64(first.GetRemainingBytes()) + SnapshotTrailer, // no database has 2⁶³ bytes
		StorageVersion: first.GetVersion(),
		url:            c.url,
		ctx:            ctx,
		stream:         stream,
		first:          first,
	}, nil
}

// Next returns the next piece of the stream, of 32 KiB or less. The caller may keep it. At the
// end of the stream the error is io.EOF. The caller must check whether the snapshot is
// complete.
func (s *Snapshot) Next() ([]byte, error) {
	resp := s.first
	if s.first = nil; resp == nil {
		var err error
		resp, err = s.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, clientv3.ContextError(s.ctx, err)
		}
	}
	if len(resp.GetBlob()) == 0 {
		// A member that can't read the rest of its own database sends empty pieces without end
		// (server/etcdserver/api/v3rpc/maintenance.go).
		return nil, fmt.Errorf("%s sent a piece without content: it can't read its database: see its log", s.url)
	}
	return resp.GetBlob(), nil
}
