// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
)

// ErrBroken is wrapped by all broken promises that Verify finds, as opposed to failures to
// read.
var ErrBroken = errors.New("etcd broke a promise")

// A KV is a key as one read returned it.
type KV struct {
	Value       string
	ModRevision int64
}

// A Snapshot is what a Reader saw: all keys under a prefix at a revision.
type Snapshot struct {
	Revision int64
	KVs      map[string]KV
}

// A Reader reads all keys under a prefix: for etcd, a Linearizable or a Serializable read. The
// latter may lag: Verify retries until it has caught up or ctx ends.
type Reader interface {
	String() string
	Read(ctx context.Context, prefix string) (*Snapshot, error)
}

// Verify reads through each reader. It checks that every acknowledged write exists with its
// value and its revision, and that the revisions that clients received only ever grew. It
// returns a bounded list of violations.
func (h *History) Verify(ctx context.Context, readers ...Reader) error {
	problems := &problems{}
	h.checkRevisions(problems)
	for _, reader := range readers {
		snapshot, err := h.readUntilCaughtUp(ctx, reader)
		if err != nil {
			problems.add(err)
			continue
		}
		h.checkAcks(reader.String(), snapshot, problems)
	}
	return problems.err()
}

// checkRevisions checks the acknowledgements only. A client writes one key after the other, so
// its revisions must grow, and no two writes may share a revision. Clients are not ordered:
// the first acknowledgement may be of a later write.
func (h *History) checkRevisions(problems *problems) {
	last := map[int]Ack{}
	seen := map[int64]Ack{}
	for _, ack := range h.Acks {
		if before, ok := last[ack.Client]; ok && ack.Revision <= before.Revision {
			problems.add(fmt.Errorf("%w: revisions went backwards: client %d got %d for %s, then %d for %s",
				ErrBroken, ack.Client, before.Revision, before.Key, ack.Revision, ack.Key))
		}
		if twin, ok := seen[ack.Revision]; ok {
			problems.add(fmt.Errorf("%w: revision %d was given to two writes, %s and %s", ErrBroken, ack.Revision, twin.Key, ack.Key))
		}
		last[ack.Client] = ack
		seen[ack.Revision] = ack
	}
}

func (h *History) checkAcks(reader string, snapshot *Snapshot, problems *problems) {
	for _, ack := range h.Acks {
		kv, ok := snapshot.KVs[ack.Key]
		switch {
		case !ok:
			problems.add(fmt.Errorf("%w: %s: acknowledged write lost: %s (revision %d, acknowledged %s after start)",
				ErrBroken, reader, ack.Key, ack.Revision, ack.At.Sub(h.Start)))
		case kv.Value != ack.Value:
			problems.add(fmt.Errorf("%w: %s: %s holds %q instead of the acknowledged %q", ErrBroken, reader, ack.Key, kv.Value, ack.Value))
		case kv.ModRevision != ack.Revision:
			problems.add(fmt.Errorf("%w: %s: %s is at revision %d, acknowledged at %d", ErrBroken, reader, ack.Key, kv.ModRevision, ack.Revision))
		}
	}
}

// readUntilCaughtUp returns the first read that is at least as new as the last acknowledged
// write. It retries failed reads. A linearizable read that is too old is a broken promise: it
// stays too old until ctx ends, and is reported then.
func (h *History) readUntilCaughtUp(ctx context.Context, reader Reader) (*Snapshot, error) {
	want := h.lastRevision()
	var revision int64
	for {
		snapshot, err := reader.Read(ctx, h.Prefix)
		if err != nil {
			if pause(ctx) == nil {
				continue // an election, or a member that restarts
			}
			return nil, fmt.Errorf("%s: read of %q: %w", reader, h.Prefix, err)
		}
		if snapshot.Revision >= want {
			return snapshot, nil
		}
		if snapshot.Revision < revision {
			return nil, fmt.Errorf("%w: %s: revision went backwards from %d to %d between two reads", ErrBroken, reader, revision, snapshot.Revision)
		}
		revision = snapshot.Revision
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("%w: %s: still at revision %d, while %d was acknowledged: %w", ErrBroken, reader, revision, want, err)
		}
	}
}

// problems collects errors and bounds their number.
type problems struct {
	errs []error
	more int
}

const mostProblems = 10

func (p *problems) add(err error) {
	if len(p.errs) < mostProblems {
		p.errs = append(p.errs, err)
		return
	}
	p.more++
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(p.errs, fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.errs...)
}
