// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// shortestBackoff passes between a failed attempt and the next. It doubles with
	// each further failure, up to longestBackoff.
	shortestBackoff = 5 * time.Second
	longestBackoff  = 5 * time.Minute
)

// retryAt returns the time of the next attempt after this many failures in a row, the last of
// which ended now. The next window ends the retries; next is zero if there is none.
func retryAt(failures int32, now, next time.Time) time.Time {
	retry := now.Add(min(shortestBackoff<<min(max(failures-1, 0), 10), longestBackoff))
	if soonest := now.Add(shortestBackoff); !next.IsZero() && next.Before(soonest) {
		next = soonest // windows may be shorter than that
	}
	if !next.IsZero() && next.Before(retry) {
		retry = next
	}
	return notice.RoundUp(retry)
}
