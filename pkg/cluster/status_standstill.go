// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"strings"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/notice"
)

const (
	// standstillAfter is how long the operator may wait for the same before the status reports
	// it.
	standstillAfter = time.Minute
	// standstillPause is the least time between two changes of that report: alternating
	// reasons must not cause a write each.
	standstillPause = 30 * time.Second
)

// standstill notices that passes lead to nothing new.
type standstill struct {
	since time.Time // without a successful step; zero: there is nothing to do
	// failed is the last failed step, and err its error.
	failed plan.Step
	err    error
	// misjudged is since when etcd has refused that step in error; zero if it does not.
	misjudged time.Time

	text   string
	textAt time.Time
}

// look takes the step that a pass has planned and returns the report for the status; "" if
// there is none. Waits alternate while the same problem lasts: they count as one.
func (s *standstill) look(o *plan.Observation, next plan.Step) string {
	if i, ok := next.(plan.Idle); ok && rests(i) {
		*s = standstill{}
		return ""
	}
	if s.since.IsZero() {
		s.since = o.Now
	}
	switch {
	case !misjudges(o, s.failed, s.err):
		s.misjudged = time.Time{}
	case s.misjudged.IsZero():
		s.misjudged = o.Now
	}
	if o.Now.Sub(s.since) < standstillAfter || acts(next) && !s.fails(next) {
		s.text = ""
		return ""
	}
	text := s.describe(o, next) + editAdvice(o)
	if s.text == "" || text != s.text && o.Now.Sub(s.textAt) >= standstillPause {
		s.text, s.textAt = text, o.Now
	}
	return s.text
}

// ended notes how the attempt at a step ended.
func (s *standstill) ended(next plan.Step, err error) {
	switch {
	case !acts(next), errors.Is(err, errLeftOut):
	case err == nil:
		*s = standstill{}
	default:
		s.failed, s.err = next, err
	}
}

// fails reports whether the last attempt at a step has failed.
func (s *standstill) fails(next plan.Step) bool {
	return s.failed != nil && attempt(next) == attempt(s.failed)
}

// attempt names a step in the words that stay the same at the next attempt: a new member then has
// another name.
func attempt(s plan.Step) string {
	switch s, is := s.(plan.AddMember); {
	case !is:
	case s.Learner:
		return "add a learner"
	default:
		return "add a voter"
	}
	return s.String()
}

// acts reports whether a step changes something.
func acts(s plan.Step) bool {
	switch s.(type) {
	case plan.Wait, plan.WaitForPod, plan.Idle:
		return false
	}
	return true
}

// rests reports whether there is nothing to wait for, or the status says so elsewhere.
func rests(s plan.Idle) bool {
	switch s.Why.Kind {
	case plan.AsSpecified, plan.BeingDeleted, plan.Paused, plan.SpecInvalid, plan.VersionRefused, plan.PodsRefused, plan.AuthenticationHeld, plan.WrongImage, plan.WriteUndone, plan.ImportHeld, plan.ImportJoined, plan.ImportPrepared:
		return true
	}
	return false
}

func (s *standstill) describe(o *plan.Observation, next plan.Step) string {
	const see = "; see kubectl describe pod and kubectl logs of the pods named here"
	if pod, ok := next.(plan.WaitForPod); ok {
		next = plan.Wait(pod)
	}
	switch next := next.(type) {
	case plan.Wait:
		if lost := o.LostData(); !o.Quorum && len(lost) > 0 {
			return next.Why + troubles(o) + "; the data of " + strings.Join(lost, ", ") + " is gone: if the other members are no quorum without it, back up what they hold, and restore a backup (EtcdRestore)"
		}
		if t := troubles(o); t != "" {
			return next.Why + t + see
		}
		return next.Why
	case plan.Idle:
		if next.Why.Kind == plan.EarlierPods {
			return "for pods of an earlier EtcdCluster of this name to go: if it was deleted with --cascade=orphan, back up what they hold, then delete them (kubectl delete pods,persistentvolumeclaims -l etcd_cluster=" + o.Names.Cluster + ")"
		}
		return "since " + next.Why.String() + troubles(o) + see
	}
	text := "for this to succeed: " + attempt(next)
	if s.err != nil {
		text += ": " + notice.Shorten(s.err.Error(), 500)
	}
	if !s.misjudged.IsZero() && o.Now.Sub(s.misjudged) >= misjudgedAfter {
		text += reconnection(o)
	}
	return text + troubles(o)
}
