// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func TestTheCheckFindsWhatCanNotBe(t *testing.T) {
	type step struct {
		o   op
		out outcome
	}
	for name, tc := range map[string]struct {
		steps []step
		good  bool
	}{
		"a write is read":               {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{get, "k", "", ""}, outcome{value: "a"}}}, true},
		"a write is lost":               {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{get, "k", "", ""}, outcome{}}}, false},
		"an old value is read":          {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{put, "k", "", "b"}, outcome{}}, {op{get, "k", "", ""}, outcome{value: "a"}}}, false},
		"a deletion is seen":            {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{remove, "k", "", ""}, outcome{}}, {op{get, "k", "", ""}, outcome{}}}, true},
		"a deletion comes back":         {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{remove, "k", "", ""}, outcome{}}, {op{get, "k", "", ""}, outcome{value: "a"}}}, false},
		"a write without an answer":     {[]step{{op{put, "k", "", "a"}, outcome{unknown: true}}, {op{get, "k", "", ""}, outcome{}}, {op{get, "k", "", ""}, outcome{value: "a"}}}, true},
		"it is made once":               {[]step{{op{put, "k", "", "a"}, outcome{unknown: true}}, {op{get, "k", "", ""}, outcome{value: "a"}}, {op{get, "k", "", ""}, outcome{}}}, false},
		"a swap that fits":              {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{swap, "k", "a", "b"}, outcome{swapped: true}}, {op{get, "k", "", ""}, outcome{value: "b"}}}, true},
		"a swap that does not":          {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{swap, "k", "x", "b"}, outcome{swapped: true}}}, false},
		"a swap that was refused":       {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{swap, "k", "a", "b"}, outcome{}}}, false},
		"keys have nothing in common":   {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{get, "other", "", ""}, outcome{}}}, true},
		"a swap that nobody knows of":   {[]step{{op{put, "k", "", "a"}, outcome{}}, {op{swap, "k", "a", "b"}, outcome{unknown: true}}, {op{get, "k", "", ""}, outcome{value: "b"}}}, true},
		"nobody has written that value": {[]step{{op{get, "k", "", ""}, outcome{value: "z"}}}, false},
	} {
		h := newHistory()
		for _, s := range tc.steps {
			time.Sleep(time.Microsecond) // operations one after the other
			h.call(1, s.o)(s.out)
		}
		if err := h.check(time.Minute); (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOperationsAreCounted(t *testing.T) {
	h := newHistory()
	h.call(1, op{put, "b", "", "x"})(outcome{})
	h.call(1, op{get, "a", "", ""})(outcome{unknown: true}) // says nothing
	h.call(2, op{put, "a", "", "x"})(outcome{unknown: true})
	if all, unknown := h.count(); all != 2 || unknown != 1 {
		t.Errorf("%d operations, %d without an answer", all, unknown)
	}
	if keys := h.keys(); !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("keys %v", keys)
	}
}

// A backup is a read of all keys, at some time while it was made.
func TestABackupHoldsWhatWasAcknowledgedBefore(t *testing.T) {
	for value, good := range map[string]bool{"before": true, "meanwhile": true, "": false, "later": false} {
		h := newHistory()
		write := func(value string, called, returned time.Duration) {
			h.ops = append(h.ops, porcupine.Operation{ClientId: 1, Input: op{put, "k", "", value}, Call: called.Nanoseconds(), Output: outcome{}, Return: returned.Nanoseconds()})
		}
		write("before", time.Second, 2*time.Second)
		write("meanwhile", 4*time.Second, 5*time.Second)
		write("later", 7*time.Second, 8*time.Second)
		h.read(2, "k", value, 3*time.Second, 6*time.Second)
		if err := h.check(time.Minute); (err == nil) != good {
			t.Errorf("a backup with %q: %v", value, err)
		}
	}
}
