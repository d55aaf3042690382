// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestUntilTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), "the third try", func(context.Context) error {
			if tries++; tries < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

func TestUntilSaysWhyItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, last := errors.New("too late"), errors.New("connection refused")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, late)
		defer cancel()
		err := Until(ctx, "the API server", func(context.Context) error { return last })
		if !errors.Is(err, late) || !errors.Is(err, last) {
			t.Errorf("got %v", err)
		}
	})
}
