// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import "time"

// failurePause is the time between two events about a row of failures, even if their reasons
// differ: addresses and ports in them do.
const failurePause = 10 * time.Minute

// Failures is a row of failed attempts. Its zero value is an empty row.
type Failures struct {
	reason string // the last reported one
	at     time.Time
}

// News reports whether a failure deserves an event: the first of a row does, and later a new
// reason after failurePause. News assumes that the caller then sends the event.
func (f *Failures) News(reason string, now time.Time) bool {
	pause := now.Sub(f.at)
	if f.reason != "" && (reason == f.reason || pause >= 0 && pause < failurePause) {
		return false
	}
	f.reason, f.at = reason, now
	return true
}
