// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// diary is a Reconciler that writes down what the loop asks of it.
type diary struct {
	next time.Duration
	in   func() // a pass

	mu    sync.Mutex
	lines []string
}

func (d *diary) write(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// read returns the lines since the last call.
func (d *diary) read() []string {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	return lines
}

// expect compares these lines.
func (d *diary) expect(t *testing.T, want ...string) {
	t.Helper()
	if got := d.read(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func begin(t *testing.T, d *diary) *Mailbox[*api.EtcdCluster] {
	m := NewMailbox[*api.EtcdCluster]()
	go Run(t.Context(), clock.RealClock{}, m, Reconciler[*api.EtcdCluster]{
		Take:  func(obj *api.EtcdCluster) { d.write("takes " + obj.ResourceVersion) },
		Woken: func() { d.write("wakes") },
		Pass: func(context.Context) time.Duration {
			d.write("pass")
			if d.in != nil {
				d.in()
			}
			return d.next
		},
	})
	return m
}

func version(v string) *api.EtcdCluster {
	obj := &api.EtcdCluster{}
	obj.ResourceVersion = v
	return obj
}

func TestThePassDecidesWhenTheNextOneBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{next: time.Minute}
		begin(t, d)
		d.expect(t, "pass")
		time.Sleep(time.Minute - time.Nanosecond)
		d.expect(t)
		time.Sleep(time.Nanosecond)
		d.expect(t, "pass")
	})
}

func TestAnUpdateOrAWakeBeginsAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{next: time.Hour}
		m := begin(t, d)
		d.expect(t, "pass")
		obj := version("1")
		m.Update(obj)
		obj.ResourceVersion = "of the informer's own copy"
		d.expect(t, "takes 1", "pass")
		m.Wake()
		d.expect(t, "wakes", "pass")
		done := make(chan struct{})
		m.WakeAfter(done)
		d.expect(t)
		close(done)
		d.expect(t, "wakes", "pass")
	})
}

func TestOnePassAnswersAllThatPrecedesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		d := &diary{next: time.Hour, in: func() { <-gate }}
		m := begin(t, d)
		d.expect(t, "pass")
		for i := range 3 { // during the first pass
			m.Update(version(fmt.Sprint(i)))
			m.Wake()
		}
		close(gate)
		got := d.read()
		slices.Sort(got) // the loop takes an update or a wake first
		if want := []string{"pass", "takes 2", "wakes"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestNoPassFollowsTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m, passes := NewMailbox[*api.EtcdCluster](), 0
		Run(ctx, clock.RealClock{}, m, Reconciler[*api.EtcdCluster]{
			Take: func(*api.EtcdCluster) {},
			Pass: func(context.Context) time.Duration {
				passes++
				m.Wake()
				cancel()
				return 0
			},
		})
		if passes != 1 {
			t.Errorf("%d passes", passes)
		}
	})
}

func TestAJobWakesTheLoopWithItsResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{next: time.Hour}
		m := begin(t, d)
		d.expect(t, "pass")
		job := Start(t.Context(), m.Wake, func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if _, ended := job.Result(); ended {
			t.Error("there is a result before the end")
		}
		cause := errors.New("an edit")
		job.Stop(cause)
		d.expect(t, "wakes", "pass")
		if result, ended := job.Result(); !ended || !errors.Is(result, cause) {
			t.Errorf("%v, ended: %t", result, ended)
		}
		if _, ended := job.Result(); ended {
			t.Error("the result comes twice")
		}
	})
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	var b Backoff
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, LongestErrorWait, LongestErrorWait} {
		if got := b.Fail(now); got != want || b.Remaining(now) != want {
			t.Errorf("failure %d: waits for %s, want %s", b.Failures(), got, want)
		}
	}
	if got := b.Remaining(now.Add(10 * time.Second)); got != 5*time.Second {
		t.Errorf("the wait still lasts %s", got)
	}
	if got := b.Remaining(now.Add(-time.Hour)); got != 0 {
		t.Errorf("after the clock moved back, the wait still lasts %s", got)
	}
	if b.Skip(); b.Remaining(now) != 0 || b.Failures() != 7 {
		t.Errorf("after an edit the wait is %s, with %d failures", b.Remaining(now), b.Failures())
	}
	if b.Reset(); b.Failures() != 0 {
		t.Errorf("%d failures after a success", b.Failures())
	}
	if got := ErrorWait(1000, time.Hour); got != 128*time.Second {
		t.Errorf("after 1000 failures the wait is %s", got)
	}
}

func TestAnEarlierStateIsOutdated(t *testing.T) {
	for name, c := range map[string]struct {
		obj, known string
		want       bool
	}{
		"earlier":       {"9", "10", true},
		"the same":      {"10", "10", false},
		"newer":         {"11", "10", false},
		"not a version": {"x", "10", false},
	} {
		if got := Outdated(version(c.obj), version(c.known)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
