// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// removeFormerMember lets the former members leave after the commit, one by one.
func removeFormerMember(o *Observation) Step {
	if !o.Importing() || !o.Committed() || o.Copying() {
		return nil
	}
	former, own := o.FormerVoters(), o.ownVoters()
	if len(former) == 0 || len(own) == 0 {
		return nil
	}
	if o.dataDiffers() && len(own) != len(former) {
		return nil // a person decides first whose data is right: importIdle
	}
	leader := o.Leader()
	if i := slices.IndexFunc(former, func(m MemberState) bool { return m.ID == leader }); i >= 0 {
		successor, ok := o.successor(former[i])
		if s := slices.IndexFunc(own, stopping); !ok && s >= 0 {
			return o.replaceOr(o.awaited(own[s], former[i].Title()+" can leave"))
		}
		if !ok {
			return o.replaceOr("for a member that can lead in place of " + former[i].Title())
		}
		return MoveLeader{From: former[i].Title(), Former: leader, To: successor.PodName, ID: successor.ID}
	}
	victim := slices.MinFunc(former, func(a, b MemberState) int {
		return cmp.Or(compareBool(a.Healthy(), b.Healthy()), cmp.Compare(a.Title(), b.Title()))
	})
	// Etcd adds no member while a voter is down.
	lost := victim.SilentFor(o.Now) > WedgeDeadline && Count(own, steady) == len(own) && o.needs(victim) == ""
	if len(own) < len(former) && (len(o.Own()) < o.wanted() || len(o.Learners()) > 0) && !lost {
		return nil // others are about to join
	}
	if why := o.needs(victim); why != "" {
		return o.replaceOr(why)
	}
	return RemoveMember{ID: victim.ID, Name: victim.Title(), Former: true, Relies: podsOf(own), Why: because("the import is committed")}
}

// needs says what has to be before a former member can leave, or "". Own members that are about to stop can
// take their data along. What former members hold is the only copy then.
func (o *Observation) needs(former MemberState) string {
	own := o.ownVoters()
	ends := slices.IndexFunc(own, stopping)
	switch {
	case !o.quorumWithout(former):
		return "for more healthy members before " + former.Title() + " can leave"
	case ends >= 0 && (former.Healthy() || !o.quorumOfOthers(former, steady)):
		return o.awaited(own[ends], former.Title()+" can leave")
	case len(own) == len(o.FormerVoters()) || !former.Healthy():
		return ""
	}
	for _, m := range own {
		if !m.Healthy() {
			return "for " + m.PodName + " to be healthy before " + former.Title() + " leaves"
		}
	}
	return ""
}

// replaceOr replaces a member that will not return. Otherwise it waits. The rules that replace members come
// after the one that waits for them.
func (o *Observation) replaceOr(why string) Step {
	if s := replaceLostMember(o); s != nil {
		return s
	}
	if s := replaceWedgedMember(o); s != nil {
		return s
	}
	return Wait{why}
}

// podsOf are the pods of members that serve and are not about to stop.
func podsOf(members []MemberState) []PodRef {
	var pods []PodRef
	for _, m := range members {
		if steady(m) && m.Pod != nil {
			pods = append(pods, PodRef{m.Pod.Name, m.Pod.UID})
		}
	}
	return pods
}
