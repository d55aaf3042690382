// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"
)

// An Ack is a write that etcd acknowledged. From then on the key must be readable, with this
// value, at this revision.
type Ack struct {
	Client   int
	Key      string
	Value    string
	Revision int64
	At       time.Time
}

// A History is the result of one run of a Writer.
type History struct {
	Prefix  string
	Start   time.Time
	End     time.Time
	Acks    []Ack // in the order of acknowledgement, over all clients
	Failed  int   // writes without an acknowledgement: applied or not, nobody knows
	Failure string
}

// A Gap is a time in which no client got an acknowledgement.
type Gap struct {
	From time.Time
	Took time.Duration
}

// Gaps returns the times without an acknowledgement that took longer than least, in order,
// including the time before the first and after the last one.
func (h *History) Gaps(least time.Duration) []Gap {
	var gaps []Gap
	last := h.Start
	look := func(at time.Time) {
		if took := at.Sub(last); took > least {
			gaps = append(gaps, Gap{From: last, Took: took})
		}
		last = at
	}
	for _, ack := range h.Acks {
		look(ack.At)
	}
	look(h.End)
	return gaps
}

// LongestGap returns the longest time without an acknowledgement.
func (h *History) LongestGap() Gap {
	gaps := h.Gaps(0)
	if len(gaps) == 0 {
		return Gap{From: h.Start}
	}
	return slices.MaxFunc(gaps, func(a, b Gap) int { return int(a.Took - b.Took) })
}

// String describes the availability in one line.
func (h *History) String() string {
	longest := h.LongestGap()
	s := fmt.Sprintf("%d writes acknowledged and %d failed in %s; longest gap %s (%s after start), gaps over 1 s: %d",
		len(h.Acks), h.Failed, h.End.Sub(h.Start).Round(time.Millisecond),
		longest.Took.Round(time.Millisecond), longest.From.Sub(h.Start).Round(time.Millisecond), len(h.Gaps(time.Second)))
	if h.Failure != "" {
		s += "; last failure: " + h.Failure
	}
	return s
}

// lastRevision returns the highest acknowledged revision.
func (h *History) lastRevision() int64 {
	var last int64
	for _, ack := range h.Acks {
		last = max(last, ack.Revision)
	}
	return last
}
