// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// patient lets an attempt take as long as anybody may ask for.
var patient = &api.BackupPolicy{TimeoutInSecond: math.MaxInt64}

func TestAnAttemptInWhichNothingMovesIsEnded(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for name, c := range map[string]struct {
		hangs func(w *world)
		says  string
	}{
		"the store": {
			func(w *world) {
				w.store.meddle(func(ctx context.Context, operation, _ string) error {
					if operation != "put" {
						return nil
					}
					return hang(ctx)
				}, nil)
			},
			"the store has taken nothing for 2m0s or more, with 0.0 KiB of 0.0 KiB read",
		},
		"etcd, from the beginning": {
			func(w *world) {
				w.openSnapshot = func(ctx context.Context, _ snapshot.Source) error { return hang(ctx) }
			},
			"nobody has answered for 2m0s or more, and etcd had not even begun to send",
		},
		"etcd, on the way": {
			func(w *world) {
				take := w.cfg.OpenSnapshot
				w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
					s, err := take(ctx, source)
					if err == nil {
						s.ReadCloser = io.NopCloser(io.MultiReader(io.LimitReader(s.ReadCloser, 5), hanging(func() error { return hang(ctx) })))
					}
					return s, err
				}
			},
			"etcd has sent nothing for 2m0s or more, with 0.0 KiB of 0.0 KiB read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, testBackup(patient))
				c.hangs(w)
				defer w.run()()
				pass(watchdog.StallTimeout - time.Second)
				if st := w.status(); st.Phase != api.BackupPhaseRunning {
					t.Fatalf("status %+v", st)
				}
				pass(watchdog.StallInterval + time.Second) // the next may be under way by then
				if st := w.status(); st.Failures != 1 || !strings.Contains(st.Reason, c.says) {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// hanging is a reader that comes to no end.
type hanging func() error

func (h hanging) Read([]byte) (int, error) { return 0, h() }

func TestAnAttemptThatIsSlowIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, testBackup(patient))
		take := w.cfg.OpenSnapshot
		w.cfg.OpenSnapshot = func(ctx context.Context, source snapshot.Source) (*Snapshot, error) {
			s, err := take(ctx, source)
			if err == nil {
				s.ReadCloser = dripping{s.ReadCloser}
			}
			return s, err
		}
		// It has taken some 40 minutes by then, and what the store has is put together.
		w.store.meddle(func(_ context.Context, operation, _ string) error {
			if operation == "put" {
				time.Sleep(30 * time.Minute) // of the bubble's time
			}
			return nil
		}, nil)
		defer w.run()()
		pass(2 * time.Hour)
		if st := w.status(); !st.Succeeded || st.Size != 22 || w.store.count("put") != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// dripping is a reader of one byte in a while.
type dripping struct{ io.ReadCloser }

func (d dripping) Read(p []byte) (int, error) {
	time.Sleep(watchdog.StallTimeout - watchdog.StallInterval) // of the bubble's time
	return d.ReadCloser.Read(p[:1])
}

func TestNoTimeoutIsLongerThanADay(t *testing.T) {
	if got := testBackup(patient).Spec.Timeout(); got != 24*time.Hour {
		t.Errorf("the timeout is %s", got)
	}
}

// Eight backups of one namespace that take their time are no reason for those of
// others to wait.
func TestANamespaceGetsNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			clusterWide bool
			want        int
		}{{true, share}, {false, slots}} {
			s := NewSlots(c.clusterWide)
			granted := func(namespace string) (n int) {
				for range 20 {
					claim := s.claim(t.Context(), namespace, func() {})
					synctest.Wait()
					if claim.take() {
						n++
					}
					claim.drop()
				}
				return n
			}
			if n := granted("greedy"); n != c.want || s.free("greedy") {
				t.Errorf("cluster-wide %v: one namespace got %d slots, want %d", c.clusterWide, n, c.want)
			}
			if n := granted("modest"); n != slots-c.want || s.free("modest") {
				t.Errorf("cluster-wide %v: another namespace got %d slots", c.clusterWide, n)
			}
			s.release("greedy")
			if c.clusterWide && s.free("modest") || !s.free("greedy") {
				t.Error("the slot that was given back is not where it belongs")
			}
		}
	})
}
