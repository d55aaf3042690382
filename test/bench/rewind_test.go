//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/test/members"
)

var (
	eventsFlag = flag.Int64("events", 10_000_000, "number of changes in the log that is restored")
	valueFlag  = flag.Int("value", 100, "size in bytes of the value of each of these changes")
)

// rewindVariable marks the process that writes a restored database, in which nothing else uses memory.
const rewindVariable = "ETCD_OPERATOR_BENCH_REWIND"

// rewindOrder is what that process writes.
type rewindOrder struct {
	File, Target string
	SnapshotSize int64
	Revision     int64
}

// rewindResult is what it prints at its end.
type rewindResult struct {
	Nanoseconds, Processor int64
	Keys                   int
}

func rewindAsOrdered(text string) error {
	var order rewindOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		return err
	}
	start := time.Now()
	done, err := rewind.ToWithLog(order.File, order.SnapshotSize, order.Target, order.Revision)
	if err != nil {
		return err
	}
	result := rewindResult{Nanoseconds: time.Since(start).Nanoseconds(), Processor: processorTime(), Keys: done.Keys}
	return json.NewEncoder(os.Stdout).Encode(result)
}

const (
	loggedKeys     = 1_000_000 // that the changes of a log concern
	loggedRevision = 4000      // in a segment
)

// TestRewind measures the restore of a snapshot and a log after it to the log's last revision: until the
// database is written, and until etcd serves it.
func TestRewind(t *testing.T) {
	release, size := members.ReleaseOf(t, "3.6"), databaseSize(2048)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	first, cluster := takeSnapshot(t, release, size, file)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	logged := appendLog(t, file, cluster, first, *eventsFlag)
	r := &rewindReport{snapshot: info.Size(), log: logged, events: *eventsFlag, value: *valueFlag}
	for round := range *rounds {
		target := filepath.Join(dir, fmt.Sprintf("restored-%d", round))
		result, memory := rewound(t, rewindOrder{File: file, Target: target, SnapshotSize: info.Size(), Revision: first + *eventsFlag})
		start := time.Now()
		data := filepath.Join(dir, "data")
		release.Run(t, release.SnapshotTool(), "snapshot", "restore", target, "--data-dir", data)
		restored := time.Since(start)
		start = time.Now()
		etcd := release.Start(t, members.Options{Data: data, Flags: []string{"--quota-backend-bytes", fmt.Sprint(16 << 30), "--unsafe-no-fsync"}})
		watch := watchMemory(etcd.Members[0].Pid())
		if got, err := etcd.Client(t).Get(t.Context(), "logged-1"); err != nil || got.Header.Revision != first+*eventsFlag {
			t.Fatalf("etcd serves revision %v (%v), want %d", got, err, first+*eventsFlag)
		}
		served := time.Since(start)
		peak := watch()
		etcd.Members[0].Destroy(t)
		if err := os.Remove(target); err != nil {
			t.Fatal(err)
		}
		r.add(time.Duration(result.Nanoseconds), restored, served, time.Duration(result.Processor), memory, peak)
		t.Logf("round %d of %d: written in %v, with %v of the processor and %s of memory, %d keys; etcdutl %v; etcd serves after %v more, with %s",
			round+1, *rounds, time.Duration(result.Nanoseconds), time.Duration(result.Processor), mebibytes(memory), result.Keys, restored, served, mebibytes(peak))
	}
	publish(t, logRestores, release, fmt.Sprintf("%d rounds", *rounds), r)
}

// takeSnapshot fills an etcd and saves its snapshot. It returns its revision and the cluster's ID.
func takeSnapshot(t *testing.T, release members.Release, size int64, file string) (revision int64, cluster uint64) {
	t.Helper()
	source := release.Start(t, members.Options{Flags: []string{
		"--quota-backend-bytes", fmt.Sprint(4 * size), "--max-request-bytes", fmt.Sprint(16 << 20),
		"--snapshot-count", "200", "--max-wals", "1", "--unsafe-no-fsync",
	}})
	client := source.Client(t)
	fillDatabase(t, client, size)
	got, err := client.Get(t.Context(), "key-0")
	if err != nil {
		t.Fatal(err)
	}
	release.Run(t, "etcdctl", "--endpoints", source.Members[0].URL, "snapshot", "save", file)
	source.Members[0].Destroy(t)
	return got.Header.Revision, got.Header.ClusterId
}

// appendLog appends a log of changes of small keys to a snapshot. It returns the log's size in bytes.
func appendLog(t *testing.T, file string, cluster uint64, last, events int64) (size int64) {
	t.Helper()
	out, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	buffered := bufio.NewWriterSize(out, 1<<20)
	random := rand.New(rand.NewChaCha8([32]byte{}))
	content := rand.NewChaCha8([32]byte{1})
	created, versions := make([]int64, loggedKeys), make([]int64, loggedKeys)
	tail, at := changelog.NewTail(cluster, last), time.UnixMilli(1_700_000_000_000).UTC()
	for end := last + events; last < end; {
		s := &changelog.Segment{Cluster: cluster, First: last + 1}
		for range min(loggedRevision, end-last) {
			last++
			at = at.Add(time.Millisecond)
			key := random.IntN(loggedKeys)
			if versions[key]++; created[key] == 0 {
				created[key] = last
			}
			value := make([]byte, *valueFlag)
			_, _ = content.Read(value) // never fails
			kv, err := proto.Marshal(&mvccpb.KeyValue{
				Key: fmt.Appendf(nil, "logged-%d", key), Value: value, CreateRevision: created[key], ModRevision: last, Version: versions[key],
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Revisions = append(s.Revisions, changelog.Revision{Main: last, At: at, Changes: []changelog.Change{{KeyValue: kv}}})
		}
		s.Last, s.Until = last, at
		tail.Tie(s)
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		tail.Stored(s)
		if _, err := buffered.Write(text); err != nil {
			t.Fatal(err)
		}
		size += int64(len(text))
	}
	if err := buffered.Flush(); err != nil {
		t.Fatal(err)
	}
	return size
}

// rewound runs the process, and returns the peak of its memory.
func rewound(t *testing.T, order rewindOrder) (result rewindResult, peak int64) {
	t.Helper()
	cmd := child(t, rewindVariable, order)
	var answer bytes.Buffer
	cmd.Stdout = &answer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	if err == nil {
		err = json.Unmarshal(answer.Bytes(), &result)
	}
	if err != nil {
		t.Fatalf("the process that writes the database: %v: %s", err, strings.TrimSpace(answer.String()))
	}
	return result, watch()
}
