// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAMemberThatSendsNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := within(t.Context(), func(ctx context.Context) (*Snapshot, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if !errors.Is(err, errSlow) || time.Since(start) != openLimit {
			t.Errorf("error %v after %v, want %v after %v", err, time.Since(start), errSlow, openLimit)
		}
	})
}

func TestASnapshotThatHasBegunMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streaming context.Context
		s, err := within(t.Context(), func(ctx context.Context) (*Snapshot, error) {
			streaming = ctx
			return &Snapshot{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * openLimit)
		if streaming.Err() != nil {
			t.Errorf("its context has ended: %v", context.Cause(streaming))
		}
		s.cancel(nil)
		if streaming.Err() == nil {
			t.Error("its context did not end when it was cancelled")
		}
	})
}
