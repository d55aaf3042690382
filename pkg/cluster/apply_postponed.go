// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// takenPause is how long an object of somebody else in the place of one that
	// the members can do without is put up with.
	takenPause = time.Minute
	// refusedPause is the time between tries at a write that the API server
	// refuses.
	refusedPause = 10 * time.Second
	// mendPause is the least time between two times that the same is put right:
	// whoever undoes it at once does not get a storm of writes.
	mendPause = 5 * time.Second
)

// postponed holds until when each of some writes is put off.
type postponed map[string]time.Time

// holds reports whether a write is put off.
func (p postponed) holds(what string, now time.Time) bool { return now.Before(p[what]) }

// forget drops each write that is put off no longer. Nobody may ask about it again: its
// pod is gone, or its Service has another generation.
func (p postponed) forget(now time.Time) {
	maps.DeleteFunc(p, func(_ string, until time.Time) bool { return !now.Before(until) })
}

// writeEnded puts off further tries at a write that failed, and tells of it where
// the API server refuses it for a reason that a person can mend.
func (c *Cluster) writeEnded(what string, err error) {
	if err == nil {
		delete(c.notices.refused, what)
		return
	}
	c.postponed[what] = c.cfg.Clock.Now().Add(refusedPause)
	if refused(err) {
		c.notices.writeRefused(what, err)
	}
}

// refused tells whether the API server understood a request and says no: a quota,
// a policy, a webhook, a right that is missing. The same request may be taken
// later, when somebody has changed that.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
