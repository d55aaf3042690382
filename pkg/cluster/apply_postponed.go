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
	// specRefusedPause is the time between tries at what the spec asks for and the API
	// server refuses, unless the spec asks for something else.
	specRefusedPause = time.Minute
	// correctionPause is the least time between two times that the same is put right:
	// whoever undoes it at once does not get a storm of writes.
	correctionPause = 5 * time.Second
	// joinSinglyTime is how long pods of new members are created one by one after one of
	// several found no node.
	joinSinglyTime = 10 * time.Minute
)

// severalPods is the creation of several pods that join one after the other.
const severalPods = "create several pods"

// postponed holds each write that is not tried before a time, by what it does.
type postponed map[string]postponement

type postponement struct {
	until time.Time
	// refusal is what the API server said to the last try; "" where nobody refused it.
	refusal string
}

// put puts off a write.
func (p postponed) put(what string, until time.Time) { p[what] = postponement{until: until} }

// putRefused puts off a write that the API server refuses.
func (p postponed) putRefused(what, refusal string, until time.Time) {
	p[what] = postponement{until, refusal}
}

// holds reports whether a write is put off.
func (p postponed) holds(what string, now time.Time) bool { return now.Before(p[what].until) }

// refusal is why the API server refuses a write that is put off; "" if it does not.
func (p postponed) refusal(what string, now time.Time) string {
	if !p.holds(what, now) {
		return ""
	}
	return p[what].refusal
}

// forget drops each write that is put off no longer. Nobody may ask about it again: its
// pod is gone, or its Service has another generation.
func (p postponed) forget(now time.Time) {
	maps.DeleteFunc(p, func(_ string, w postponement) bool { return !now.Before(w.until) })
}

// writeEnded puts off further tries at a write that failed, and tells of it where
// the API server refuses it for a reason that a person can mend.
func (c *Cluster) writeEnded(what string, err error) {
	if err == nil {
		delete(c.notices.refused, what)
		return
	}
	c.postponed.put(what, c.cfg.Clock.Now().Add(refusedPause))
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
