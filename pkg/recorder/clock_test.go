// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/recorder/recordertest"
)

// setBack is a clock that somebody sets back.
type setBack struct {
	clock.RealClock
	by atomic.Int64
}

func (s *setBack) Now() time.Time { return time.Now().Add(-time.Duration(s.by.Load())) }

func TestALogBeatsAfterTheClockIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		member, clk := recordertest.New(7), &setBack{}
		member.Write(20, 5, 0)
		var segments atomic.Int32
		r := recorder.Recorder{
			Member: member, Cluster: 7, Lag: 5 * time.Second, Clock: clk,
			Store:  func(context.Context, *changelog.Segment) error { return nil },
			Stored: func(*changelog.Segment) { segments.Add(1) },
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx, 20, nil) }()
		time.Sleep(5*time.Minute + time.Second)
		before := segments.Load()
		clk.by.Store(int64(3 * time.Hour))
		time.Sleep(5 * time.Minute)
		if after := segments.Load() - before; before < 5 || before > 7 || after < 4 || after > 6 {
			t.Errorf("in five minutes, %d segments came before, and %d after", before, after)
		}
		cancel()
		<-ended
	})
}
