// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

func TestARowTellsOfARun(t *testing.T) {
	s := summary{
		began: time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC), struckFor: 90 * time.Minute, seed: 7, operations: 1063253, unknown: 140,
		clusters: []availability{{"one", 0.9, 12 * time.Second}, {"three", 0.9994, 34500 * time.Millisecond}},
		struck:   map[string]int{"fsyncs hang": 2, "etcd killed": 3}, passed: true,
	}
	const want = "| 2026-11-22 09:30 | 1.50 | 7 | 1,063,253 | 140 | one 90.0 %, three 99.9 % | 34 s (three) | 5: `etcd killed (3), fsyncs hang (2)` | no violation |"
	if got := s.row(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s.passed = false
	if got := s.row(); !strings.HasSuffix(got, "| **failed** |") {
		t.Errorf("a run that failed: %s", got)
	}
}

// A row is appended to the page, so its table has to be the last there, and as wide.
func TestThePageEndsWithTheTable(t *testing.T) {
	page, err := os.ReadFile("../../doc/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(page), "\n"), "\n")
	if got, want := strings.Count(lines[len(lines)-1], "|"), strings.Count(summary{}.row(), "|"); got != want {
		t.Errorf("the last line of the page has %d bars, a row has %d: %s", got, want, lines[len(lines)-1])
	}
}

func TestAvailabilityCountsSecondsWithAWrite(t *testing.T) {
	h := newHistory()
	at := func(when time.Duration, k kind, out outcome) {
		h.ops = append(h.ops, porcupine.Operation{Input: op{k, "k", "", "v"}, Output: out, Return: when.Nanoseconds()})
	}
	at(100*time.Millisecond, put, outcome{})
	at(900*time.Millisecond, put, outcome{})
	at(1500*time.Millisecond, get, outcome{})              // no write
	at(2500*time.Millisecond, swap, outcome{})             // one that did not fit is an answer as well
	at(3500*time.Millisecond, put, outcome{unknown: true}) // no answer
	at(20500*time.Millisecond, remove, outcome{})          // after the end
	at(7*time.Second, remove, outcome{})                   //
	got := h.availability("c", 10*time.Second)
	if want := (availability{"c", 0.3, 4500 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
