//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/time/rate"

	"github.com/etcd-operator/etcd-operator/test/members"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

var (
	rateFlag = flag.Int("rate", 1000, "writes of 1 KiB in a second, beside which a log is recorded")
	logFlag  = flag.Duration("for", 20*time.Minute, "how long to write")
	lagFlag  = flag.Duration("lag", 5*time.Second, "maxLag of the log")
	turnFlag = flag.Duration("turn", time.Minute, "how long the log is recorded, and then not recorded")
)

const (
	logWriters = 50
	logValue   = 1 << 10 // bytes
)

// TestLog measures a continuous backup beside clients that write at a steady rate: from the
// acknowledgement of a write to the end of the upload of its segment. In turns, nothing is recorded. Clients
// measure each put, in all turns.
func TestLog(t *testing.T) {
	release := members.ReleaseOf(t, "3.6")
	source := release.Start(t, members.Options{Flags: []string{"--quota-backend-bytes", fmt.Sprint(8 << 30), "--auto-compaction-mode", "revision", "--auto-compaction-retention", "100000"}})
	server := stores.MinIO(t, stores.Options{})
	server.CreateBucket(t, bucket)
	config := recordingConfig{Lag: *lagFlag, backupConfig: backupConfig{
		Etcd: source.Members[0].URL, Endpoint: server.Endpoint, Bucket: bucket,
		AccessKey: server.AccessKey, SecretKey: server.SecretKey, Region: server.Region,
	}}
	r := &logReport{rate: *rateFlag, lag: *lagFlag}
	w := startWriting(t, source.Client(t))
	w.turn() // the first seconds warm caches
	time.Sleep(10 * time.Second)
	w.turn()
	for end := time.Now().Add(*logFlag); time.Now().Before(end); {
		recording := startRecording(t, config)
		recording.begun(t)
		w.turn()
		time.Sleep(*turnFlag)
		r.with = append(r.with, w.turn()...)
		r.addSegments(recording.end(t), w)
		r.memory = max(r.memory, recording.peak)
		discard(t, server)
		w.turn()
		time.Sleep(*turnFlag)
		r.without = append(r.without, w.turn()...)
		t.Log(r.line())
	}
	w.end()
	if err := w.failure(); err != nil {
		t.Fatal(err)
	}
	publish(t, logs, release, fmt.Sprintf("%d puts of 1 KiB a second for %s, recorded in every second %s", *rateFlag, *logFlag, *turnFlag), r)
}

// writing is clients that write at a steady rate.
type writing struct {
	stop func()
	done sync.WaitGroup

	mu    sync.Mutex
	puts  []time.Duration // of this turn
	acked map[int64]time.Time
	err   error
}

func startWriting(t *testing.T, client *clientv3.Client) *writing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writing{stop: cancel, acked: map[int64]time.Time{}}
	limit := rate.NewLimiter(rate.Limit(*rateFlag), 1)
	for n := range logWriters {
		w.done.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(n)})
			value := make([]byte, logValue)
			for i := 0; limit.Wait(ctx) == nil; i++ {
				_, _ = random.Read(value) // never fails
				start := time.Now()
				put, err := client.Put(ctx, fmt.Sprintf("key-%d-%d", n, i%2000), string(value))
				if ctx.Err() != nil {
					return
				}
				w.add(start, time.Now(), put, err)
			}
		})
	}
	return w
}

func (w *writing) add(start, end time.Time, put *clientv3.PutResponse, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = err
		return
	}
	w.puts = append(w.puts, end.Sub(start))
	w.acked[put.Header.Revision] = end
}

// turn ends a turn, and returns how long its puts took.
func (w *writing) turn() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	puts := w.puts
	w.puts = nil
	return puts
}

// lags returns the time from the acknowledgement of each write to a moment, and forgets the writes.
func (w *writing) lags(first, last int64, at time.Time) (lags []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for revision := first; revision <= last; revision++ {
		if acked, is := w.acked[revision]; is {
			lags = append(lags, at.Sub(acked))
			delete(w.acked, revision)
		}
	}
	return lags
}

func (w *writing) end() {
	w.stop()
	w.done.Wait()
}

func (w *writing) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// recording is a process that records.
type recording struct {
	cmd      *exec.Cmd
	orders   io.Closer
	answers  *bufio.Scanner
	segments chan []recordedSegment
	watch    func() int64
	peak     int64
}

func startRecording(t *testing.T, config recordingConfig) *recording {
	t.Helper()
	r := &recording{cmd: child(t, recordingVariable, config), segments: make(chan []recordedSegment, 1)}
	var err error
	if r.orders, err = r.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	answers, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.answers = bufio.NewScanner(answers)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.watch = watchMemory(r.cmd.Process.Pid)
	return r
}

// begun waits for the first segment, and then collects the others.
func (r *recording) begun(t *testing.T) {
	t.Helper()
	if !r.answers.Scan() {
		t.Fatalf("the process that records has ended: %v", r.answers.Err())
	}
	go func() {
		var list []recordedSegment
		for r.answers.Scan() {
			var s recordedSegment
			if json.Unmarshal(r.answers.Bytes(), &s) == nil { // a line that the end cut off
				list = append(list, s)
			}
		}
		r.segments <- list
	}()
}

func (r *recording) end(t *testing.T) []recordedSegment {
	t.Helper()
	if err := r.orders.Close(); err != nil {
		t.Fatal(err)
	}
	list := <-r.segments
	r.peak = r.watch()
	if err := r.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return list
}

// addSegments adds what a recording has stored.
func (r *logReport) addSegments(list []recordedSegment, w *writing) {
	for i, s := range list {
		r.lags = append(r.lags, w.lags(s.First, s.Last, s.At)...)
		r.segments++
		r.bytes += int64(s.Bytes)
		if i > 0 {
			r.processor += time.Duration(s.Processor - list[i-1].Processor)
			r.revisions += s.Last - s.First + 1
		}
	}
}
