// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
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
	// refusalGrace is how long the status still reports a refusal after the pause: the next
	// attempt decides. Without it, the status would change before and after each attempt.
	refusalGrace = 3 * refusedPause
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

// extend delays a write further, and leaves its refusal.
func (p postponed) extend(what string, until time.Time) {
	p[what] = postponement{until, p[what].refusal}
}

// seeKept notes whether an object that the operator has annotated has that annotation. Admission
// may have dropped it.
func (p postponed) seeKept(what, object string, result metav1.Object, key, value string) {
	why := ""
	if result.GetAnnotations()[key] != value {
		why = fmt.Sprintf("admission drops the annotation %s=%s of %s: allow it in the webhook or policy that changes annotations", key, value, object)
	}
	p[what] = postponement{p[what].until, why}
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

// lastRefusal returns why the API server refuses a write, also while the next attempt is due;
// "" if it does not.
func (p postponed) lastRefusal(what string, now time.Time) string {
	if !now.Before(p[what].until.Add(refusalGrace)) {
		return ""
	}
	return p[what].refusal
}

// accepted notes that the API server no longer refuses a write.
func (p postponed) accepted(what string) { delete(p, what) }

// forget drops each write whose pause is over, and whose refusal is. Nobody may ask about it again: its pod is gone,
// or its Service has another generation.
func (p postponed) forget(now time.Time) {
	maps.DeleteFunc(p, func(what string, _ postponement) bool { return !p.holds(what, now) && p.lastRefusal(what, now) == "" })
}

// writeEnded puts off further attempts at a failed write. It sends an event if the API server
// refuses the write for a reason that a person can fix.
func (c *Cluster) writeEnded(what string, err error) {
	if err == nil {
		delete(c.notices.refused, what)
		if w, delayed := c.postponed[what]; delayed {
			c.postponed.put(what, w.until) // it is refused no more
		}
		return
	}
	until := c.cfg.Clock.Now().Add(refusedPause)
	c.postponed.extend(what, until)
	if refused(err) {
		c.postponed.putRefused(what, err.Error(), until)
		c.notices.writeRefused(what, err, refusedPause)
	}
}

// refusedTo says for the status which write the API server refuses; "" if it does not.
func (c *Cluster) refusedTo(what string, now time.Time) string {
	why := c.postponed.lastRefusal(what, now)
	if why == "" {
		return ""
	}
	return "Kubernetes refuses to " + what + ": " + why + ": change the policy, webhook or role that refuses it"
}

// triesAgain reports whether the API server has refused a step before that its rule leaves out between
// two attempts.
func (c *Cluster) triesAgain(s plan.Step, now time.Time) bool {
	what := ""
	switch s := s.(type) {
	case plan.DeletePod:
		what = deletionOfPod(s.Name)
	case plan.DeleteVolume:
		what = deletionOfVolume(s.Name)
	case plan.ExpandVolume:
		what = sizeOf(c.obj, s.Name)
	}
	return c.postponed.lastRefusal(what, now) != ""
}

// leftOut marks the refusal of a write that its rule leaves out for a while. The next pass follows at
// once: many such refusals in a row must not delay later rules.
func leftOut(err error) error {
	if refused(err) {
		return fmt.Errorf("%w: %w", errLeftOut, err)
	}
	return err
}

// refused reports whether the API server understood a request and refused it: because of a
// quota, a policy, a webhook, or a missing right. It may accept the same request after
// somebody has changed that.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}
