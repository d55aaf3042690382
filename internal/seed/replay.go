// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
	"github.com/etcd-operator/etcd-operator/pkg/pages"
)

const (
	// replayPause is the pause between two looks at the database.
	replayPause = 50 * time.Millisecond
	// replayStall is how long etcd may apply nothing. It first reads all keys of the database.
	replayStall = 15 * time.Minute
	// replayEnd is how long etcd may take to end. It then has to write what it has applied.
	replayEnd = time.Minute
)

// replay has etcd apply the requests in the appendix of a snapshot, and returns the file of its database. Without
// requests, it returns "". This happens before the revision is raised: a transaction may compare revisions of
// requests before it.
//
// A new cluster of one gets the requests as committed entries of its log. Its etcd listens on sockets in
// the directory alone.
func (r Restore) replay(ctx context.Context, snapshot string, size int64) (string, error) {
	entries, file, err := openEntries(snapshot, size)
	if errors.Is(err, raftlog.ErrNoAppendix) || errors.Is(err, pages.ErrNoDatabase) { // the tool explains what is no database
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the raft entries after the database: %w", err)
	}
	defer file.Close()
	dir := filepath.Join(r.Dir, replayDir)
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("remove what an earlier attempt has left: %w", err)
	}
	if err := checkSpace(r.Dir, size, "the backup with the raft entries at its end"); err != nil {
		return "", fmt.Errorf("%w: the node's disk, or the limit on ephemeral storage, is too small for it", err)
	}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	const name = "replay"
	if err := r.runTool(ctx, "snapshot", "restore", snapshot, "--data-dir="+data, "--name="+name,
		"--initial-cluster="+name+"=http://localhost:2380", "--initial-advertise-peer-urls=http://localhost:2380"); err != nil {
		return "", err
	}
	count, last, err := raftlog.Append(data, entries.Requests())
	if err != nil {
		return "", fmt.Errorf("add the raft entries after the database to the log of etcd: %w", err)
	}
	if count == 0 {
		return "", nil
	}
	fmt.Fprintf(r.Out, "restore-backup: etcd applies %d requests that the survivor had received, and had not applied\n", count)
	if err := r.runEtcd(ctx, dir, data, last); err != nil {
		return "", fmt.Errorf("%w; to restore without the %d requests that the survivor had not applied, set spec.revision of the EtcdRestore to status.backup.etcdRevision", err, count)
	}
	return database(data), nil
}

func database(dataDir string) string { return filepath.Join(dataDir, "member", "snap", "db") }

// openEntries opens the appendix of a snapshot. The caller closes the file unless there is an error.
func openEntries(snapshot string, size int64) (entries *raftlog.Appended, file *os.File, err error) {
	if file, err = os.Open(snapshot); err != nil {
		return nil, nil, err
	}
	db, err := pages.Open(file)
	if err == nil {
		entries, err = raftlog.OpenAppendix(file, db.Size(), size-sha256.Size)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return entries, file, nil
}

// runEtcd runs etcd until its database holds an entry of the log.
func (r Restore) runEtcd(ctx context.Context, dir, data string, last uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := filepath.Join(filepath.Dir(r.Tool), "etcd")
	cmd := exec.CommandContext(ctx, program, "--data-dir="+data, "--name=replay",
		"--listen-client-urls=unix://client:1", "--advertise-client-urls=unix://client:1",
		"--listen-peer-urls=unix://peer:1", "--initial-advertise-peer-urls=http://localhost:2380", "--initial-cluster=replay=http://localhost:2380",
		"--quota-backend-bytes=-1", // it has applied the requests, or would have
		"--logger=zap", "--log-level=warn", "--log-outputs=stderr")
	cmd.Dir = dir // of the sockets
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "ETCD_") })
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output := &lastLine{}
	cmd.Stdout, cmd.Stderr = r.Out, io.MultiWriter(r.Err, output)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // etcd then commits to the database
	cmd.WaitDelay = replayEnd
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start etcd to apply raft entries: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	pause := time.NewTicker(replayPause)
	defer pause.Stop()
	stall := cmp.Or(r.stall, replayStall)
	stalled := time.NewTimer(stall)
	defer stalled.Stop()
	seen := uint64(0)
	for {
		select {
		case err := <-ended:
			if stopped := context.Cause(ctx); stopped != nil {
				return fmt.Errorf("was asked to stop while etcd applies raft entries: %w", stopped)
			}
			return fmt.Errorf("etcd ended while it applied raft entries (%w): %s", cmp.Or(err, errors.New("exit code 0")), output)
		case <-pause.C:
			// etcd notes the name of the member after the last entry, so it writes an index that is not lower.
			index, err := consistentIndex(data)
			if err == nil && index >= last {
				cancel()
				<-ended // the signal is its error
				return applied(data, last)
			}
			if err == nil && index > seen {
				seen = index
				stalled.Reset(stall)
			}
		case <-stalled.C:
			cancel()
			<-ended
			return fmt.Errorf("etcd has applied no raft entry for %v: %s", stall, output)
		}
	}
}

// applied fails if a database of an etcd that has ended lacks an entry.
func applied(data string, last uint64) error {
	index, err := consistentIndex(data)
	if err == nil && index < last {
		err = fmt.Errorf("it has applied raft entry %d, and not %d", index, last)
	}
	if err != nil {
		return fmt.Errorf("look what etcd has applied: %w", err)
	}
	return nil
}

// consistentIndex is the last raft entry that a database holds. Its etcd may run.
func consistentIndex(data string) (uint64, error) {
	file, err := os.Open(database(data))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	db, err := pages.Open(file)
	if err != nil {
		return 0, err
	}
	meta, found, err := db.Bucket([]byte("meta"))
	if err != nil || !found {
		return 0, err
	}
	value, found, err := meta.Get([]byte("consistent_index"))
	if err != nil || !found || len(value) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}
