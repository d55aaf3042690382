// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestEventsHappenInOrder(t *testing.T) {
	type when struct {
		at time.Duration
		no int
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1)) // not for secrets
		var queue events
		var want, got []when
		for no := range 200 {
			if r.IntN(3) == 0 && queue.Len() > 0 {
				queue.pop()()
				i := slices.Index(want, got[len(got)-1])
				if slices.ContainsFunc(want, func(w when) bool { return w.at < want[i].at || w.at == want[i].at && w.no < want[i].no }) {
					t.Fatalf("seed %d: %v happens before an earlier one of %v", seed, want[i], want)
				}
				want = slices.Delete(want, i, i+1)
				continue
			}
			w := when{time.Duration(r.IntN(20)), no}
			want = append(want, w)
			queue.push(w.at, func() { got = append(got, w) })
		}
		for queue.Len() > 0 {
			at := queue.first()
			queue.pop()()
			if got[len(got)-1].at != at {
				t.Fatalf("seed %d: first says %d, and the event is of %d", seed, at, got[len(got)-1].at)
			}
		}
		if last := got[len(got)-len(want):]; !slices.IsSortedFunc(last, func(a, b when) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.no - b.no
		}) {
			t.Fatalf("seed %d: %v", seed, last)
		}
	}
}
