// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package summary judges an EtcdCluster as it was observed: whether it serves, what its
// members do, and what a person should do next. It asks nobody anything.
package summary

import (
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
)

// State is how a cluster is.
type State string

// The states of a cluster, the best first.
const (
	// Serving is a cluster that takes reads and writes, with all its members.
	Serving State = "SERVING"
	// Degraded is a cluster that takes reads and writes, and lacks something.
	Degraded State = "DEGRADED"
	// Down is a cluster that refuses writes, or reads and writes.
	Down State = "DOWN"
)

// ExitCode is what `kubectl etcd status` ends with.
func (s State) ExitCode() int {
	switch s {
	case Serving:
		return 0
	case Degraded:
		return 1
	default:
		return 2
	}
}

// Summary is what `kubectl etcd status` prints.
type Summary struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	State     State  `json:"state"`
	// Reasons are why the state is not SERVING.
	Reasons []string `json:"reasons,omitempty"`
	Version string   `json:"version,omitempty"`
	Target  string   `json:"targetVersion,omitempty"`
	Paused  bool     `json:"paused,omitempty"`
	Size    int      `json:"size"`
	Voters  int      `json:"voters"`
	Healthy int      `json:"healthyVoters"`
	// Tolerates is how many voters the cluster can lose and still serve. It is negative
	// without a quorum.
	Tolerates int    `json:"tolerates"`
	Leader    string `json:"leader,omitempty"`
	// Source is who was asked: members, or the operator where the members can't be.
	Source   string `json:"source"`
	NotAsked string `json:"notAsked,omitempty"`
	// Revision is the highest one that is known, and Confirmed whether a quorum confirms it now.
	// RevisionRecorded is when the operator recorded it, if nobody knows a later one.
	Revision         int64  `json:"revision,omitempty"`
	Confirmed        bool   `json:"revisionConfirmed"`
	RevisionRecorded string `json:"revisionRecorded,omitempty"`

	Activity []string `json:"activity,omitempty"`
	Members  []Member `json:"members"`
	Backups  []Backup `json:"backups"`
	// NoBackups is why the backups are not known.
	NoBackups    string        `json:"backupsNotRead,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	Advice       []string      `json:"advice,omitempty"`

	chosen []string
}

// Place is where recommended commands work.
func (s *Summary) Place() hint.Place { return hint.Place{Namespace: s.Namespace, Chosen: s.chosen} }

// The sources of a summary.
const (
	FromMembers  = "members"
	FromOperator = "operator"
)

// Of summarizes a cluster. What happened since an earlier observation counts alone where
// there is one, for durations of writes; else all since the members started.
func Of(c, earlier *observe.Cluster) *Summary {
	s := &Summary{
		Name: c.Object.Name, Namespace: c.Object.Namespace, Size: c.Object.Spec.Size,
		Version: c.Object.Status.CurrentVersion, Target: c.Object.Status.TargetVersion,
		Paused: c.Object.Spec.Paused, Source: FromMembers,
		Members: []Member{}, Backups: []Backup{}, chosen: c.Chosen,
	}
	if c.NotAsked != nil {
		s.Source, s.NotAsked = FromOperator, c.NotAsked.Error()
		s.Members = membersOfStatus(c)
	} else {
		s.Members = members(c, earlier)
	}
	s.count()
	if s.servesOthers(c) {
		s.Tolerates = 0
	}
	s.know(c)
	s.Activity = activity(c)
	s.State, s.Reasons = judge(c, s)
	s.Backups = backups(c)
	if c.NoBackups != nil {
		s.NoBackups = c.NoBackups.Error()
	}
	s.Certificates = Certificates(c)
	s.Advice = advice(c, s)
	return s
}

// count counts the votes.
func (s *Summary) count() {
	for _, m := range s.Members {
		if m.Votes() {
			s.Voters++
			if m.Healthy {
				s.Healthy++
			}
		}
		if m.Role == Leader && m.Healthy {
			s.Leader = m.Name
		}
	}
	s.Tolerates = s.Healthy - (s.Voters/2 + 1)
}

// servesOthers reports whether a quorum confirms reads although the plugin finds none: the API server does not
// connect it to enough voters.
func (s *Summary) servesOthers(c *observe.Cluster) bool {
	votes, quorum := s.Healthy, s.Voters/2+1
	if votes >= quorum || !c.Quorum() {
		return false
	}
	for _, m := range s.Members {
		if m.Votes() && slices.ContainsFunc(c.Answers, func(a observe.Answer) bool { return a.Pod == m.Name && a.Unreached() }) {
			votes++
		}
	}
	return votes >= quorum
}

// know finds the highest revision that is known. A survivor of a lost quorum may lack what the operator has
// seen.
func (s *Summary) know(c *observe.Cluster) {
	s.Confirmed = c.Quorum()
	for _, a := range c.Answers {
		if a.Err == nil {
			s.Revision = max(s.Revision, a.Status.Revision)
		}
	}
	if s.Confirmed {
		return
	}
	if st := c.Object.Status.Recovery; st != nil {
		s.Revision = max(s.Revision, st.LastRevision)
	}
	if rec := c.Object.Status.Record; rec != nil && rec.Revision >= s.Revision {
		s.Revision, s.RevisionRecorded = rec.Revision, rec.LastUpdateTime
	}
}

// age is the time since a moment.
func age(c *observe.Cluster, at time.Time) time.Duration { return c.Time.Sub(at) }
