// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

func TestLearnersThatCopyAreSeenToMoveOn(t *testing.T) {
	const world = `
cluster
member a leader db=8589934592
member b
member n learner copying=25m`
	says := func(receives bool, err error) func(context.Context, string) (bool, error) {
		return func(_ context.Context, address string) (bool, error) {
			if address != "10.0.0.9:2381" {
				t.Errorf("%s was asked", address)
			}
			return receives, err
		}
	}
	seen := copies{}
	observed := func(after time.Duration, receives func(context.Context, string) (bool, error)) plan.MemberState {
		o := look(t, world)
		o.Now = o.Now.Add(after)
		o.Pod("n").IP, o.Members[2].Received = "10.0.0.9", time.Time{}
		seen.look(t.Context(), o, receives)
		return o.Members[2]
	}
	start := look(t, world).Now
	if m := observed(0, says(true, nil)); !m.Received.Equal(start) || m.CopyUnseen {
		t.Errorf("while it receives: %+v", m)
	}
	m := observed(time.Minute, says(false, nil))
	if !m.Received.Equal(start) || m.CopyUnseen || m.Copies(start.Add(time.Minute)) {
		t.Errorf("after it has: %+v", m)
	}
	if m := observed(time.Minute, says(false, errors.New("refused"))); !m.CopyUnseen {
		t.Errorf("where it can't be seen: %+v", m)
	}
	if m := observed(time.Minute, func(context.Context, string) (bool, error) { panic("of the test") }); !m.CopyUnseen {
		t.Errorf("after a panic: %+v", m)
	}
}

// A voter that was away for long receives a copy too, and serves nothing meanwhile.
func TestAVoterThatServesNothingIsAskedForItsCopy(t *testing.T) {
	for down, want := range map[time.Duration]bool{30 * time.Second: false, 2 * time.Minute: true} {
		o := look(t, "cluster\nmember a leader\nmember b\nmember c stalled="+down.String())
		for i := range o.Pods {
			o.Pods[i].IP = "10.0.0." + o.Pods[i].Name
		}
		asked := map[string]bool{}
		var one sync.Mutex
		copies{}.look(t.Context(), o, func(_ context.Context, address string) (bool, error) {
			one.Lock()
			defer one.Unlock()
			asked[address] = true
			return true, nil
		})
		if c := o.Members[2]; asked["10.0.0.c:2381"] != want || c.Copies(o.Now) != want || asked["10.0.0.a:2381"] {
			t.Errorf("after %s: %v were asked, and it copies: %t", down, asked, c.Copies(o.Now))
		}
		if got := problem(o.Members[2], o) == "receives a copy of the database, or defragments it"; got != want {
			t.Errorf("after %s: its problem is %q", down, problem(o.Members[2], o))
		}
	}
}

func TestStatusTellsOfACopy(t *testing.T) {
	st := statusIn(t, `
cluster
member a leader db=8589934592
member b
member n learner copying=25m`)
	if got := st.MemberStatuses[2].Problem; !strings.Contains(got, "receives a copy of the database") {
		t.Errorf("its problem is %q", got)
	}
}
