// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package notice

import "time"

// failurePause passes between two events about attempts that fail, after the first of
// a row, even where their reasons differ: addresses and ports in them do.
const failurePause = 10 * time.Minute

// Failures is a row of attempts that fail. Its zero value is an empty one.
type Failures struct {
	reason string // that was told last
	at     time.Time
}

// News tells whether a failure is to be told: the first of a row is, and others now
// and then. It takes what it says yes to as told.
func (f *Failures) News(reason string, now time.Time) bool {
	pause := now.Sub(f.at)
	if f.reason != "" && (reason == f.reason || pause >= 0 && pause < failurePause) {
		return false
	}
	f.reason, f.at = reason, now
	return true
}
