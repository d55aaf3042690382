// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A volume whose server is gone hangs in calls that no context ends.
func TestAStoreThatHangsForGoodHoldsNobodyWhoWithdrawsOrStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := New(Config{})
		withdraw := s.Offer("example", "token", Backup{Size: 1, SHA256: sum, Open: func(context.Context, int64) (io.ReadCloser, error) {
			<-gate
			return nil, errors.New("at last")
		}})
		answered := make(chan *recorder)
		go func() { answered <- s.answerTo(t, "") }()
		synctest.Wait()
		began := time.Now()
		withdraw()
		if took := time.Since(began); took != withdrawPatience {
			t.Errorf("to withdraw took %s", took)
		}
		if got := s.answerTo(t, ""); got.code != http.StatusNotFound {
			t.Errorf("it is still offered: %d", got.code)
		}
		began = time.Now()
		s.stop()
		if took := time.Since(began); took != shutdownGrace {
			t.Errorf("to stop took %s", took)
		}
		close(gate)
		<-answered
	})
}
