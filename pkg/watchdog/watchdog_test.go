// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/utils/clock"
)

var errStalled = errors.New("stalled")

// pass lets the time of the bubble pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWorkWithProgressContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved atomic.Int64
		ctx, stop := WithStallTimeout(t.Context(), clock.RealClock{}, Progress{
			Moved: moved.Load, Stalled: func() error { return errStalled },
		})
		defer stop()
		for range 10 {
			pass(StallTimeout - StallInterval)
			moved.Add(1)
		}
		if ctx.Err() != nil {
			t.Error("the work ended, though bytes moved")
		}
		pass(StallTimeout + StallInterval)
		if !errors.Is(context.Cause(ctx), errStalled) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
	})
}

func TestAStoreMayFinishForAsLongAsItReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var moved atomic.Int64
		var complete atomic.Bool
		ctx, stop := WithStallTimeout(t.Context(), clock.RealClock{}, Progress{
			Moved: moved.Load, Complete: complete.Load, Stalled: func() error { return errStalled },
		})
		defer stop()
		for range 60 {
			pass(time.Minute)
			moved.Add(1)
		}
		complete.Store(true)
		pass(time.Hour - time.Minute)
		if ctx.Err() != nil {
			t.Error("the work ended, though the store received for an hour")
		}
		pass(2 * time.Minute)
		if !errors.Is(context.Cause(ctx), errStalled) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
	})
}

func TestRunAbandonsWorkThatNoContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gate, began := make(chan struct{}), time.Now()
		time.AfterFunc(time.Hour, cancel)
		result, abandoned := Run(ctx, clock.RealClock{}, func() int { <-gate; return 1 })
		if result != 0 || abandoned == nil || time.Since(began) != time.Hour+GracePeriod {
			t.Fatalf("%d after %s", result, time.Since(began))
		}
		close(gate)
		<-abandoned
		if result, abandoned := Run(ctx, clock.RealClock{}, func() int { pass(GracePeriod / 2); return 2 }); result != 2 || abandoned != nil {
			t.Errorf("work that ends in the grace period returns %d", result)
		}
	})
}

func TestAPanicIsAnError(t *testing.T) {
	var log strings.Builder
	logger := logrus.New()
	logger.SetOutput(io.Writer(&log))
	result, err := Recover(logrus.NewEntry(logger), func() int { panic("no such member") })
	if result != 0 || !errors.Is(err, ErrBug) || !strings.Contains(log.String(), "no such member") || !strings.Contains(log.String(), "watchdog_test.go") {
		t.Errorf("%d, %v, log %s", result, err, log.String())
	}
	if result, err := Recover(logrus.NewEntry(logger), func() int { return 1 }); result != 1 || err != nil {
		t.Errorf("%d, %v", result, err)
	}
}
