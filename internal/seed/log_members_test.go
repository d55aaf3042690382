//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
)

// record records the life from now on. end waits until everything is stored, and appends the
// log to the backup.
func (l *life) record(t *testing.T) (end func()) {
	t.Helper()
	client := etcd.NewClient(nil)
	t.Cleanup(client.Close)
	conn, err := client.Conn(etcd.Endpoint{URL: l.client.Endpoints()[0]})
	if err != nil {
		t.Fatal(err)
	}
	at, err := conn.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var log []byte
	tail := changelog.NewTail(at.ClusterID, at.Revision)
	stored := make(chan *changelog.Segment, 1000)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		r := recorder.Recorder{
			Member: recorder.Of(conn), Cluster: at.ClusterID, Lag: 200 * time.Millisecond, Clock: clock.RealClock{},
			Store: func(_ context.Context, s *changelog.Segment) error {
				tail.Tie(s)
				text, err := s.Encode()
				if err == nil {
					tail.Stored(s)
				}
				log = append(log, text...)
				return err
			},
			Hashes: recorder.Hashes{Every: 300 * time.Millisecond, Ask: func(ctx context.Context, revision int64) (changelog.Checkpoint, error) {
				hash, err := conn.HashAt(ctx, revision)
				return changelog.Checkpoint{Revision: revision, Compacted: max(hash.Compacted, 0), Hash: hash.Sum}, err
			}},
			Stored: func(s *changelog.Segment) { stored <- s },
		}
		done <- r.Run(ctx, at.Revision, nil)
	}()
	return func() {
		// A revision with two changes, and then etcd's hash of it.
		pair, err := l.client.Txn(t.Context()).Then(clientv3.OpPut("key-1", "of two"), clientv3.OpPut("key-2", "of two")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		l.revision = pair.Header.Revision
		for last, hashed := int64(0), false; last < l.revision || !hashed; {
			select {
			case s := <-stored:
				last = s.Last
				if c := s.Checkpoint; c != nil && c.Revision >= pair.Header.Revision {
					hashed = true
				}
			case err := <-done:
				t.Fatal(err)
			}
			if !hashed && last == l.revision {
				put, err := l.client.Put(t.Context(), "key-3", "another segment")
				if err != nil {
					t.Fatal(err)
				}
				l.revision = put.Header.Revision
			}
		}
		enough := errors.New("enough")
		cancel(enough)
		if err := <-done; !errors.Is(err, enough) {
			t.Fatal(err)
		}
		base, err := os.ReadFile(l.backup)
		if err == nil {
			err = os.WriteFile(l.backup, append(base, log...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		l.snapshotSize = int64(len(base))
	}
}

// At each revision after a snapshot, the snapshot and the log give what etcd had: key by key,
// with all revisions, versions and leases, and by etcd's own hash.
func TestEachRevisionOfALogComesBackExactly(t *testing.T) {
	for i, release := range oldestAndNewest(t) { // random histories are those of all minors from 3.5 on
		seed := uint64(3 * i)
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			l := begin(t, release, 100+seed)
			l.steps(t, 60)
			end := l.record(t)
			l.steps(t, 30)
			l.save(t)
			base := l.revision
			l.steps(t, 150)
			end()
			first := max(base, l.compacted)
			revisions := []int64{first, l.revision, l.revision - 1}
			for range 2 {
				revisions = append(revisions, first+l.rng.Int64N(l.revision-first+1))
			}
			slices.Sort(revisions)
			verified := 0
			for _, revision := range slices.Compact(revisions) {
				if out := l.checkAt(t, revision); strings.Contains(out, "have the hash that etcd reported") {
					verified++
				}
			}
			if verified == 0 {
				t.Error("no hash of etcd was verified")
			}
			l.checkLoss(t)
		})
	}
}

// checkLoss loses one change of a revision. Each revision is still there.
func (l *life) checkLoss(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(l.backup)
	if err != nil {
		t.Fatal(err)
	}
	var segments []*changelog.Segment
	last := int64(0) // checkpoint
	for from := bytes.NewReader(text[l.snapshotSize:]); ; {
		s, err := changelog.Read(from)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Checkpoint != nil {
			last = s.Checkpoint.Revision
		}
		segments = append(segments, s)
	}
	for _, s := range slices.Backward(segments) {
		for i := range slices.Backward(s.Revisions) {
			// What a compaction has removed before the hash does not count.
			if r := &s.Revisions[i]; r.Main <= last && r.Main > l.compacted && len(r.Changes) > 1 {
				r.Changes = r.Changes[1:]
				l.refused(t, text[:l.snapshotSize], segments)
				return
			}
		}
	}
	t.Error("no revision had two changes")
}

func (l *life) refused(t *testing.T, base []byte, segments []*changelog.Segment) {
	t.Helper()
	tail := changelog.NewTail(segments[0].Cluster, segments[0].First-1)
	file := slices.Clone(base)
	for _, s := range segments {
		tail.Tie(s)
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		tail.Stored(s)
		file = append(file, text...)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(backup, file, 0o600); err != nil {
		t.Fatal(err)
	}
	r := restoreOf(t, backup, l.release)
	r.Revision, r.SnapshotSize = l.revision, l.snapshotSize
	if err := r.Run(t.Context()); !errors.Is(err, rewind.ErrHash) || !strings.Contains(err.Error(), "a member of etcd reported") {
		t.Errorf("a lost change: %v", err)
	}
	if _, err := os.Stat(r.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there are data of it: %v", err)
	}
}
