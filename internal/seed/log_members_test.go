//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/test/members"
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
	stored := make(chan int64, 1000)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		r := recorder.Recorder{
			Member: recorder.Of(conn), Cluster: at.ClusterID, Lag: 200 * time.Millisecond, Clock: clock.RealClock{},
			Store: func(_ context.Context, s *changelog.Segment) error {
				text, err := s.Encode()
				log = append(log, text...)
				return err
			},
			Stored: func(s *changelog.Segment) { stored <- s.Last },
		}
		done <- r.Run(ctx, at.Revision, nil)
	}()
	return func() {
		for last := int64(0); last < l.revision; {
			select {
			case last = <-stored:
			case err := <-done:
				t.Fatal(err)
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
	for _, release := range members.Releases(t) {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s history %d", release.Minor(), seed), func(t *testing.T) {
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
				for _, revision := range slices.Compact(revisions) {
					l.checkAt(t, revision)
				}
			})
		}
	}
}
