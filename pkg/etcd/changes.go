// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Change is one change of a key.
type Change struct {
	// Revision is that of the transaction.
	Revision int64
	// Tombstone means that the key was deleted.
	Tombstone bool
	// KeyValue is what etcd stores of the change: the marshalled mvccpb.KeyValue, with only
	// the key for a tombstone.
	KeyValue []byte
	// Lease of the key; 0: none.
	Lease int64
}

// CompactedError means that the member has compacted the revision at which a stream of changes
// was to begin.
type CompactedError struct {
	// Revision is the oldest one that the member still has.
	Revision int64
}

func (e CompactedError) Error() string {
	return fmt.Sprintf("etcd has compacted its history up to revision %d", e.Revision)
}

// maxTransaction is how many bytes of one revision a stream holds. It has them in memory several times, and
// nobody gets a part of a revision. Only the deletion of some hundred thousand keys at once is larger.
const maxTransaction = 64 << 20

// TooLargeError means that a stream has ended because a transaction changes more than a caller can take.
type TooLargeError struct{ Revision int64 }

func (e TooLargeError) Error() string {
	return fmt.Sprintf("the changes of revision %d alone take more than %d MiB of memory", e.Revision, maxTransaction>>20)
}

// Changes is a stream of all changes of all keys.
type Changes struct {
	url    string
	ctx    context.Context // of the stream
	stream etcdserverpb.Watch_WatchClient
	// held are changes of a revision that may have more of them.
	held []Change
}

// Changes begins a stream of the changes from a revision on, which may be in the future. The
// stream ends with ctx, and also if the member loses its leader. The caller must end ctx.
//
// The watcher of etcd's client would buffer without a bound if its reader is slow. Here the
// member waits. As in etcd's client, no limit of gRPC holds for its messages: --max-request-bytes
// of etcd bounds them.
func (c *Conn) Changes(ctx context.Context, from int64) (*Changes, error) {
	stream, err := etcdserverpb.NewWatchClient(c.cli.ActiveConnection()).Watch(clientv3.WithRequireLeader(ctx), grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		err = stream.Send(&etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{
			CreateRequest: &etcdserverpb.WatchCreateRequest{Key: []byte{0}, RangeEnd: []byte{0}, StartRevision: from, Fragment: true},
		}})
	}
	s := &Changes{url: c.url, ctx: ctx, stream: stream}
	if err == nil {
		// The member confirms the watcher, or refuses it.
		var resp *etcdserverpb.WatchResponse
		if resp, err = stream.Recv(); err == nil {
			err = ended(resp)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("watch the changes of %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return s, nil
}

// Next returns the next changes. They are in the order of their revisions, and all changes of a
// revision come at once. It waits for them.
//
// To a stream that is behind, etcd sends a thousand revisions in one response. Its fragments have 2 MiB
// by default, and each is passed on but for its last revision. The error is TooLargeError if that alone exceeds
// maxTransaction.
func (s *Changes) Next() ([]Change, error) {
	for {
		resp, err := s.stream.Recv()
		if err == nil {
			err = ended(resp)
		}
		if err != nil {
			return nil, fmt.Errorf("watch the changes of %s: %w", s.url, clientv3.ContextError(s.ctx, err))
		}
		for _, event := range resp.GetEvents() {
			change, err := changeOf(event)
			if err != nil {
				return nil, fmt.Errorf("watch the changes of %s: %w", s.url, err)
			}
			s.held = append(s.held, change)
		}
		n := len(s.held)
		if resp.GetFragment() && n > 0 {
			last := s.held[n-1].Revision
			n = slices.IndexFunc(s.held, func(c Change) bool { return c.Revision == last })
		}
		if n > 0 {
			changes := s.held[:n]
			s.held = slices.Clone(s.held[n:])
			return changes, nil
		}
		if size(s.held) > maxTransaction { // all are of one revision
			return nil, fmt.Errorf("watch the changes of %s: %w", s.url, TooLargeError{Revision: s.held[0].Revision})
		}
	}
}

// size is about how many bytes changes take in memory.
func size(changes []Change) (bytes int) {
	const overhead = 64
	for _, c := range changes {
		bytes += overhead + len(c.KeyValue)
	}
	return bytes
}

// ended returns why the member ends the stream; nil: it does not.
func ended(resp *etcdserverpb.WatchResponse) error {
	switch {
	case resp.GetCompactRevision() != 0:
		return CompactedError{Revision: resp.GetCompactRevision()}
	case resp.GetCanceled():
		return errors.New("the member ended the stream: " + resp.GetCancelReason())
	}
	return nil
}

func changeOf(event *mvccpb.Event) (Change, error) {
	kv := event.GetKv()
	if kv == nil {
		return Change{}, errors.New("the member sent a change without a key")
	}
	change := Change{Revision: kv.GetModRevision(), Tombstone: event.GetType() == mvccpb.Event_DELETE, Lease: kv.GetLease()}
	if change.Tombstone {
		kv = &mvccpb.KeyValue{Key: kv.GetKey()}
	}
	var err error
	if change.KeyValue, err = proto.Marshal(kv); err != nil {
		return Change{}, fmt.Errorf("the change at revision %d: %w", change.Revision, err)
	}
	return change, nil
}

// LeaseOf returns the lease of a change's KeyValue; 0: it has none, or is no KeyValue.
func LeaseOf(keyValue []byte) int64 {
	var kv mvccpb.KeyValue
	if proto.Unmarshal(keyValue, &kv) != nil {
		return 0
	}
	return kv.GetLease()
}

// LeaseTTL returns the time to live in seconds that was granted to a lease; 0: the lease has
// ended.
func (c *Conn) LeaseTTL(ctx context.Context, id int64) (int64, error) {
	resp, err := etcdserverpb.NewLeaseClient(c.cli.ActiveConnection()).LeaseTimeToLive(ctx, &etcdserverpb.LeaseTimeToLiveRequest{ID: id})
	if err != nil {
		return 0, fmt.Errorf("look for a lease at %s: %w", c.url, clientv3.ContextError(ctx, c.explain(ctx, err)))
	}
	return max(resp.GetGrantedTTL(), 0), nil // etcd reports 0 for a lease that has ended
}

// Position makes a linearizable read of nothing: the member knows of every write that etcd
// acknowledged before.
func (c *Conn) Position(ctx context.Context) (Position, error) { return c.position(ctx) }
