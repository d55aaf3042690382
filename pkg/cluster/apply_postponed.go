// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// takenPause is how long the operator tolerates somebody else's object in the place of an
	// optional one.
	takenPause = time.Minute
	// refusedPause is the time between two attempts at a write that the API server refuses.
	refusedPause = 10 * time.Second
	// specRefusedPause is the pause before the operator retries what the spec asks for and the
	// API server has refused. An edit of the spec ends the pause.
	specRefusedPause = time.Minute
	// correctionPause is the least time between two corrections of the same object. If somebody
	// undoes each at once, the operator does not cause a storm of writes.
	correctionPause = 5 * time.Second
	// joinSinglyTime is how long the operator creates the pods of new members one by one, after
	// one of several found no node.
	joinSinglyTime = 10 * time.Minute
)

// severalPods is the creation of several pods that join one after the other.
const severalPods = "create several pods"

// postponed holds each delayed write and its time, by the write's name.
type postponed map[string]postponement

type postponement struct {
	until time.Time
	// refusal is the API server's answer to the last attempt; "" if it was no refusal.
	refusal string
}

// put delays a write.
func (p postponed) put(what string, until time.Time) { p[what] = postponement{until: until} }

// putRefused delays a write that the API server has refused.
func (p postponed) putRefused(what, refusal string, until time.Time) {
	p[what] = postponement{until, refusal}
}

// holds reports whether the operator still delays a write.
func (p postponed) holds(what string, now time.Time) bool { return now.Before(p[what].until) }

// refusal returns why the API server refuses a delayed write; "" if it does not.
func (p postponed) refusal(what string, now time.Time) string {
	if !p.holds(what, now) {
		return ""
	}
	return p[what].refusal
}

// forget drops each write whose pause is over. Nobody may ask about it again: its pod is gone,
// or its Service has another generation.
func (p postponed) forget(now time.Time) {
	maps.DeleteFunc(p, func(_ string, w postponement) bool { return !now.Before(w.until) })
}

// writeEnded puts off further attempts at a failed write. It sends an event if the API server
// refuses the write for a reason that a person can fix.
func (c *Cluster) writeEnded(what string, err error) {
	if err == nil {
		delete(c.notices.refused, what)
		return
	}
	c.postponed.put(what, c.cfg.Clock.Now().Add(refusedPause))
	if refused(err) {
		c.notices.writeRefused(what, err, refusedPause)
	}
}

// refused reports whether the API server understood a request and refused it: because of a
// quota, a policy, a webhook, or a missing right. It may accept the same request after
// somebody has changed that.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
