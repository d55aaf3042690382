// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/pages"
)

// maintenance is etcd's service for maintenance, as far as pkg/snapshot needs it.
type maintenance struct {
	etcdserverpb.UnimplementedMaintenanceServer
	*service
}

// notServing returns an error if the member has a leader. Otherwise, it waits until the database holds
// all, even that authentication is enabled. If the metrics can't be read, it returns at once: etcd
// may end at each start, and its data is as good.
func (s *service) notServing(ctx context.Context) error {
	member, err := s.metrics.ask(ctx)
	if errors.Is(err, etcd.ErrHasLeader) {
		return status.Error(codes.Unavailable, etcd.ErrHasLeader.Error())
	}
	if err != nil {
		return nil
	}
	id, err := s.readIdentity()
	if err != nil {
		return s.unavailable(fmt.Errorf("read who the member is: %w", err))
	}
	if member.MemberID != id.member {
		return s.unavailable(fmt.Errorf("the metrics at %s are those of the member %s, and %s holds the data of %s",
			s.Server.Metrics, etcd.FormatID(member.MemberID), s.DataDir, etcd.FormatID(id.member)))
	}
	s.metrics.await(ctx)
	return nil
}

// Status describes the member as etcd would without a leader, but RaftIndex and RaftTerm are those of the
// last entry of its log: by them, an election compares logs. Of the alarms, it reports CORRUPT, for which
// nobody must take this data.
func (m maintenance) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	if err := m.notServing(ctx); err != nil {
		return nil, err
	}
	if err := m.permit(ctx, anybody); err != nil {
		return nil, err
	}
	id, err := m.readIdentity()
	if err != nil {
		return nil, m.unavailable(fmt.Errorf("read who the member is: %w", err))
	}
	file, err := m.openDatabase()
	if err != nil {
		return nil, m.unavailable(fmt.Errorf("open the database: %w", err))
	}
	defer file.Close()
	f, err := readFacts(file, id.member)
	if err != nil {
		return nil, m.unavailable(fmt.Errorf("read the database %s: %w", file.Name(), err))
	}
	// A crash can lose the commit of the last entries, which are in the database already. The metrics
	// then name an earlier entry: 0, if the member has found nothing to apply.
	applied := max(f.consistentIndex, m.metrics.settled(f.revision))
	tail := m.readTail(f.consistentIndex)
	defer tail.Close()
	version, learner := m.metrics.member()
	var alarms []string
	if f.corrupt {
		alarms = []string{fmt.Sprintf("memberID:%d alarm:%s", id.member, etcdserverpb.AlarmType_CORRUPT)}
	}
	return &etcdserverpb.StatusResponse{
		Header:           &etcdserverpb.ResponseHeader{ClusterId: id.cluster, MemberId: id.member, Revision: f.revision, RaftTerm: f.term},
		Version:          version,
		StorageVersion:   f.storageVersion,
		DbSize:           f.db.Size() + tail.AppendixSize(),
		DbSizeInUse:      f.db.Size(), // the free pages are unknown
		RaftIndex:        max(applied, tail.Last()),
		RaftAppliedIndex: applied,
		RaftTerm:         max(f.term, tail.LastTerm()), // a database of etcd 3.4 has no term
		IsLearner:        learner,
		Errors:           alarms,
	}, nil
}

// readTail reads the entries of the log after an index. If it can't read all, it logs that, and the database
// and the others are still worth having. The caller closes the tail.
func (s *service) readTail(after uint64) *raftlog.Tail {
	tail, err := raftlog.ReadTail(s.DataDir, after)
	if err != nil {
		s.Log.WithError(err).Warnf("read the raft entries after %d: those after %d are lost if the cluster continues from this member", after, tail.Last())
	}
	return tail
}

// pieceSize is etcd's (snapshotSendBufferSize in server/etcdserver/api/v3rpc/maintenance.go).
const pieceSize = 32 << 10

// Snapshot sends the newest transaction of the database, as etcd does: the bytes that bbolt's
// Tx.WriteTo would write, then their sha256. The raft entries that the database lacks come between, as
// an appendix: the member may have confirmed them, and the leader acknowledged their writes, before it
// knew that they are committed. Snapshot ends with Aborted in place of the sha256 if etcd
// commits another transaction meanwhile.
func (m maintenance) Snapshot(_ *etcdserverpb.SnapshotRequest, stream etcdserverpb.Maintenance_SnapshotServer) error {
	if err := m.notServing(stream.Context()); err != nil {
		return err
	}
	if err := m.permit(stream.Context(), administrator); err != nil {
		return err
	}
	file, err := m.openDatabase()
	if err != nil {
		return m.unavailable(fmt.Errorf("open the database: %w", err))
	}
	defer file.Close()
	f, err := readFacts(file, 0)
	if err != nil {
		return m.unavailable(fmt.Errorf("read the database %s: %w", file.Name(), err))
	}
	tail := m.readTail(f.consistentIndex)
	defer tail.Close()
	c := &transfer{to: stream, version: f.storageVersion, left: f.db.Size() + tail.AppendixSize(), sum: sha256.New()}
	if err := c.database(file, f.db); err != nil {
		return err
	}
	if err := c.copy(tail.Appendix(), tail.AppendixSize(), "write-ahead log in "+m.DataDir); err != nil {
		return err
	}
	switch err := unmoved(file, f.db); {
	case errors.Is(err, errMoved):
		return status.Errorf(codes.Aborted, "%v: the snapshot would mix two transactions: take another one", err)
	case err != nil:
		return m.unavailable(fmt.Errorf("read the database %s: %w", file.Name(), err))
	}
	return c.send(c.sum.Sum(nil))
}

// transfer is a snapshot on its way. It holds one piece at a time.
type transfer struct {
	to      etcdserverpb.Maintenance_SnapshotServer
	version string
	left    int64 // bytes of database and log that are not sent yet
	sum     hash.Hash
}

func (c *transfer) database(file *os.File, db *pages.Database) error {
	heads := db.MetaPages()
	from := io.MultiReader(
		bytes.NewReader(heads),
		io.NewSectionReader(file, int64(len(heads)), db.Size()-int64(len(heads))),
	)
	return c.copy(from, db.Size(), "database "+file.Name())
}

// copy sends so many bytes.
func (c *transfer) copy(from io.Reader, size int64, what string) error {
	for size > 0 {
		// gRPC may still read a piece after it has taken it.
		piece := make([]byte, min(pieceSize, size))
		if _, err := io.ReadFull(from, piece); err != nil {
			return status.Errorf(codes.DataLoss, "read the %s, %d bytes before its end: %v", what, size, err)
		}
		size -= int64(len(piece))
		c.left -= int64(len(piece))
		c.sum.Write(piece)
		if err := c.send(piece); err != nil {
			return err
		}
	}
	return nil
}

// send waits while the client does not keep pace.
func (c *transfer) send(piece []byte) error {
	return c.to.Send(&etcdserverpb.SnapshotResponse{
		RemainingBytes: uint64(c.left), // not negative
		Blob:           piece, Version: c.version,
	})
}
