//go:build !race

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
)

// With the race detector, the tests here, and in readers_test.go and restoretest_tidying_test.go, take a minute
// each: their backups run for hours. Others show it the same goroutines.

// A member that answers applies nothing meanwhile, so that restarts must not multiply the
// questions.
func TestEtcdIsAskedForItsHashOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		stop := w.run()
		defer stop()
		for range 3 * 6 {
			w.write(10 * time.Minute)
			w.member.Fail(errors.New("it restarts"))
			time.Sleep(5 * time.Second)
			w.member.Fail(nil)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n := len(w.hashes); n != 3 {
			t.Fatalf("asked for the revisions %v in three hours", w.hashes)
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		var stored []int64
		for key, o := range w.store.objects {
			if _, ours := changelog.ParseKey("etcd", key); !ours {
				continue
			}
			s, err := changelog.Decode(o.content)
			if err != nil {
				t.Fatal(err)
			}
			if s.Checkpoint != nil {
				stored = append(stored, s.Checkpoint.Revision)
			}
		}
		if slices.Sort(stored); !slices.Equal(stored, w.hashes) {
			t.Errorf("the log has the hashes of %v, and %v were asked for", stored, w.hashes)
		}
	})
}

// Tests of many EtcdBackups wait for each other, for hours.
func TestATestThatWaitedForItsTurnRestoresWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, func(s *api.BackupSpec) {
			s.RestoreTest = &api.RestoreTest{IntervalInSecond: 600}
			s.BackupPolicy.BackupIntervalInSecond, s.BackupPolicy.MaxBackups = 600, 4
		})
		r := withRestorer(w.world)
		w.cfg.Tests = NewTests(1)
		stop := w.run()
		w.writeEvery(time.Minute, 2*time.Hour)
		others := w.cfg.Tests.slots
		others <- struct{}{}
		for range 6 {
			w.writeEvery(time.Minute, 2*time.Hour)
			oldest := w.backups()[0]
			r.mu.Lock()
			before := len(r.asks)
			r.mu.Unlock()
			<-others
			pass(100 * time.Millisecond)
			others <- struct{}{}
			r.mu.Lock()
			if len(r.asks) != before+1 {
				t.Errorf("%d tests in one turn", len(r.asks)-before)
			}
			for _, ask := range r.asks[before:] {
				if ask.Spec.Revision < oldest {
					t.Errorf("a test restores revision %d, and the oldest backup has %d", ask.Spec.Revision, oldest)
				}
			}
			r.mu.Unlock()
		}
		stop()
		<-others
		select {
		case others <- struct{}{}:
		default:
			t.Error("an operator that ended has kept a turn")
		}
	})
}
