// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// open asks for a snapshot as a backup does. On a busy machine, a handshake takes longer than a client waits, which
// is not what the tests are about.
func open(t *testing.T, src snapshot.Source) (*snapshot.Snapshot, error) {
	t.Helper()
	ctx := soon(t)
	for {
		s, err := snapshot.Open(ctx, src)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "authentication handshake failed: context deadline exceeded") {
			return s, err
		}
	}
}

// take reads a snapshot as a backup does.
func take(t *testing.T, src snapshot.Source) (*snapshot.Snapshot, []byte) {
	t.Helper()
	s, err := open(t, src)
	must(t, err)
	defer s.Close()
	text, err := io.ReadAll(s)
	must(t, err)
	return s, text
}

func TestASnapshotIsTheOneThatEtcdWouldSend(t *testing.T) {
	for _, mib := range []int{0, 3, 4} {
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) {
			t.Parallel() // each waits for the metrics
			d := newData(t)
			d.fill(t, mib)
			server, _ := newServer(d.dir, newMetrics(t).address)
			s, got := take(t, snapshot.Source{Endpoints: []etcd.Endpoint{start(t, server)}})
			want := d.snapshot(t)
			sum := sha256.Sum256(want)
			if !bytes.Equal(got, append(want, sum[:]...)) {
				t.Errorf("the %d bytes differ from what etcd would send", len(got))
			}
			if s.Linearizable || s.ClusterID != clusterID || s.Revision != 10 || s.Version != "3.6.16" || s.RaftApplied < 90 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestASnapshotNamesTheVersionOfTheStorage(t *testing.T) {
	d := newData(t)
	server, _ := newServer(d.dir, closedPort)
	stream, err := connect(t, start(t, server), etcd.Credentials{}).Snapshot(soon(t))
	must(t, err)
	if stream.StorageVersion != "3.6.0" || stream.Size != int64(len(d.snapshot(t)))+etcd.SnapshotTrailer {
		t.Errorf("version %q, size %d", stream.StorageVersion, stream.Size)
	}
}

func TestACommitDuringASnapshotEndsIt(t *testing.T) {
	t.Parallel()
	d := newData(t)
	d.fill(t, 8) // more than what connections hold
	server, _ := newServer(d.dir, newMetrics(t).address)
	conn := connect(t, start(t, server), etcd.Credentials{})
	read := func(meanwhile func()) (got []byte, err error) {
		stream, err := conn.Snapshot(soon(t))
		must(t, err)
		for i := 0; ; i++ {
			piece, err := stream.Next()
			if err != nil {
				return got, err
			}
			if i == 0 {
				meanwhile()
			}
			got = append(got, piece...)
		}
	}
	got, err := read(func() { d.write(t, 11, 10) })
	if status.Code(err) != codes.Aborted || len(got)%4096 != 0 {
		t.Errorf("after %d bytes, the error is %v, want Aborted before the sha256", len(got), err)
	}
	if got, err = read(func() {}); !errors.Is(err, io.EOF) || len(got)%4096 != sha256.Size {
		t.Errorf("after %d bytes, the error is %v, want the end", len(got), err)
	}
}

func TestAFileThatIsCutEndsASnapshot(t *testing.T) {
	d := newData(t)
	d.fill(t, 3)
	server, _ := newServer(d.dir, closedPort)
	ep := start(t, server)
	text := d.snapshot(t)
	must(t, d.db.Close())
	must(t, os.WriteFile(filepath.Join(d.dir, "member", "snap", "db"), text[:len(text)-4096], 0o600))
	// The last page may be the one that holds the last revision.
	s, err := snapshot.Open(soon(t), snapshot.Source{Endpoints: []etcd.Endpoint{ep}})
	if err == nil {
		defer s.Close()
		_, err = io.Copy(io.Discard, s)
	}
	if err == nil {
		t.Error("a database that lacks its last page counts as whole")
	}
}

func TestOtherRequestsEndAtOnce(t *testing.T) {
	server, _ := newServer(newData(t).dir, closedPort)
	conn := connect(t, start(t, server), etcd.Credentials{})
	if _, err := conn.Revision(soon(t)); err == nil || etcd.IsNotYet(err) || status.Code(errors.Unwrap(err)) != codes.Unimplemented {
		t.Errorf("a linearizable read: %v", err)
	}
	if _, err := conn.Commits(soon(t)); err == nil {
		t.Error("the member takes part in a quorum")
	}
	if _, err := conn.HashKV(soon(t), 1); err == nil {
		t.Error("it answers HashKV")
	}
}

func TestDataThatCanNotBeReadIsAnErrorThatIsLoggedOnce(t *testing.T) {
	for name, breakIt := range map[string]func(d *data) error{
		"no database": func(d *data) error { return os.Remove(filepath.Join(d.dir, "member", "snap", "db")) },
		"no log":      func(d *data) error { return os.RemoveAll(filepath.Join(d.dir, "member", "wal")) },
		"an empty log": func(d *data) error {
			return os.Rename(filepath.Join(d.dir, "member", "wal", "0000000000000000-0000000000000000.wal"), filepath.Join(d.dir, "member", "wal", "0.tmp"))
		},
		"another log": func(d *data) error {
			return os.WriteFile(filepath.Join(d.dir, "member", "wal", "0000000000000001-0000000000000000.wal"), []byte("something else"), 0o600)
		},
		"another database": func(d *data) error {
			must(t, d.db.Close())
			return os.WriteFile(filepath.Join(d.dir, "member", "snap", "db"), make([]byte, 64<<10), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newData(t)
			must(t, breakIt(d))
			server, log := newServer(d.dir, closedPort)
			conn := connect(t, start(t, server), etcd.Credentials{})
			for range 3 {
				_, err := conn.Status(soon(t))
				if code := status.Code(errors.Unwrap(err)); code != codes.Unavailable || !strings.Contains(err.Error(), d.dir) {
					t.Errorf("%v: %v", code, err)
				}
			}
			if got := strings.Count(log.String(), "level=error"); got != 1 {
				t.Errorf("the log has %d errors:\n%s", got, log)
			}
		})
	}
}
