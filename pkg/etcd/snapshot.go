// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"
)

// SnapshotTrailer is the length in bytes of the sha256 of a database that follows
// it in a snapshot.
const SnapshotTrailer = 32

// Revision asks for the revision of the data by a linearizable read: all writes
// that were acknowledged before the call are in it, and the member holds it. It
// fails without a quorum.
func (c *Conn) Revision(ctx context.Context) (int64, error) {
	// The client's own Get would wait for a server that is down until ctx ends.
	resp, err := etcdserverpb.NewKVClient(c.cli.ActiveConnection()).Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, CountOnly: true})
	if err != nil {
		return 0, fmt.Errorf("linearizable read from %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return resp.GetHeader().GetRevision(), nil
}

// Snapshot is the stream of a member's database, followed by its sha256 in
// SnapshotTrailer bytes. Next reads it.
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

// Snapshot opens the stream of the member's database, as it is when the call
// arrives, and waits for its beginning. The stream ends with ctx, which the caller
// has to end if the stream was not read to its end.
//
// The stream is never begun anew on its own: etcd's client retries streams that
// ask for it and that have brought nothing yet (clientv3.withMax), this one asks
// for nothing.
func (c *Conn) Snapshot(ctx context.Context) (*Snapshot, error) {
	stream, err := etcdserverpb.NewMaintenanceClient(c.cli.ActiveConnection()).Snapshot(ctx, &etcdserverpb.SnapshotRequest{})
	var first *etcdserverpb.SnapshotResponse
	if err == nil {
		first, err = stream.Recv()
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // a stream without anything in it
		}
		return nil, fmt.Errorf("snapshot from %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return &Snapshot{
		Size:           int64(len(first.GetBlob())) + int64(first.GetRemainingBytes()) + SnapshotTrailer, //nolint:gosec // no database has 2⁶³ bytes
		StorageVersion: first.GetVersion(),
		url:            c.url,
		ctx:            ctx,
		stream:         stream,
		first:          first,
	}, nil
}

// Next is the next piece of the stream, of 32 KiB or less. It is the caller's to
// keep. At the end of the stream the error is io.EOF; whether it was the end of the
// snapshot too is for the caller to check.
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
		// A member that can't read its own database any further sends nothing,
		// again and again (server/etcdserver/api/v3rpc/maintenance.go).
		return nil, fmt.Errorf("%s sent a piece without content: it can't read its database: see its log", s.url)
	}
	return resp.GetBlob(), nil
}

// IsDenied tells whether a member refused a call because the cluster has
// authentication enabled and does not know the client, or does not allow it this.
func IsDenied(err error) bool {
	if err == nil {
		return false
	}
	for _, refusal := range []error{rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	// etcd 3.5 passes on what its auth store says to a snapshot as it is.
	var refused interface{ GRPCStatus() *status.Status }
	return errors.As(err, &refused) &&
		slices.Contains([]string{"auth: user name is empty", "auth: permission denied", "auth: invalid auth token"}, refused.GRPCStatus().Message())
}
