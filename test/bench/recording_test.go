//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/store"
)

// recordingVariable marks the process that records an etcd, in which nothing else uses memory.
const recordingVariable = "ETCD_OPERATOR_BENCH_RECORDING"

// recordingConfig is for that process.
type recordingConfig struct {
	backupConfig
	Lag time.Duration
}

// recordedSegment is what it prints for each segment in the store. The first one has no revisions.
type recordedSegment struct {
	First, Last int64
	At          time.Time
	Bytes       int
	// Processor is the process's processor time so far, in nanoseconds.
	Processor int64
}

// recordAsOrdered records until its standard input ends.
func recordAsOrdered(text string) error {
	var config recordingConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	endpoint, err := etcd.ParseEndpoint(config.Etcd, false)
	if err != nil {
		return err
	}
	bucket, err := openBucket(ctx, config.backupConfig)
	if err != nil {
		return err
	}
	defer bucket.Close()
	client := etcd.NewClient(nil)
	defer client.Close()
	conn, err := client.Conn(endpoint)
	if err != nil {
		return err
	}
	member := recorder.Of(conn)
	at, err := member.Position(ctx)
	if err != nil {
		return err
	}
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // it ends
		cancel()
	}()
	out, tail, size := json.NewEncoder(os.Stdout), changelog.NewTail(at.ClusterID, at.Revision), 0
	r := recorder.Recorder{
		Member: member, Cluster: at.ClusterID, Lag: config.Lag, Clock: clock.RealClock{},
		Store: func(ctx context.Context, s *changelog.Segment) error {
			tail.Tie(s)
			text, err := s.Encode()
			if err != nil {
				return err
			}
			size = len(text)
			tail.Stored(s)
			_, err = bucket.Put(ctx, changelog.KeyOf("recording", s), store.Upload{Body: bytes.NewReader(text), Size: int64(size)})
			return err
		},
		Stored: func(s *changelog.Segment) {
			_ = out.Encode(recordedSegment{s.First, s.Last, time.Now(), size, processorTime()}) // the parent misses it
		},
	}
	if err := r.Run(ctx, at.Revision, nil); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("record: %w", err)
	}
	return nil
}
