// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery lists the ways out for a cluster that has lost its quorum, each with what
// it loses. It asks nobody anything.
package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/backups"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Report is what is left of a cluster without a quorum, and the ways out.
type Report struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Voters is how many members have a vote; 0 if nobody knows.
	Voters int `json:"voters"`
	// Recorded is the last state that the operator wrote down while there was a quorum; nil
	// if it wrote none.
	Recorded *Recorded `json:"recorded,omitempty"`
	// Missing are the voters that do not answer.
	Missing []Missing `json:"missing"`
	// Survivors are the members that answer, the most advanced first.
	Survivors []Survivor `json:"survivors"`
	// Backups are the newest ones of the EtcdBackups, the highest revision first.
	Backups []Backup `json:"backups"`
}

// Recorded is a state that a quorum agreed on.
type Recorded struct {
	Revision  int64  `json:"revision"`
	RaftIndex int64  `json:"raftIndex"`
	Time      string `json:"time,omitempty"`
}

// Missing is a voter that does not answer.
type Missing struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"`
	Node    string `json:"node,omitempty"`
	// Volume is the phase of its PersistentVolumeClaim; empty if there is none, or if the
	// user may not see it.
	Volume corev1.PersistentVolumeClaimPhase `json:"volume,omitempty"`
	// MayReturn is false if its data is gone: it has neither a pod that can run nor a volume.
	MayReturn bool `json:"mayReturn"`
}

// Survivor is a member that answers.
type Survivor struct {
	Name      string `json:"name"`
	Revision  int64  `json:"revision"`
	RaftIndex uint64 `json:"raftIndex"`
	// Behind is how many recorded revisions it lacks.
	Behind int64 `json:"behind"`
	// Unfit is why the cluster can't continue from its data; empty if it can.
	Unfit string `json:"unfit,omitempty"`
}

// Backup is the newest backup of an EtcdBackup.
type Backup struct {
	Name     string     `json:"name"`
	Key      string     `json:"key"`
	Revision int64      `json:"revision"`
	Taken    *time.Time `json:"taken,omitempty"`
	// Behind is how many revisions it lacks, of those that are recorded or that a survivor
	// holds.
	Behind int64 `json:"behind"`
}

// ErrQuorum means that the cluster has a quorum.
var ErrQuorum = errors.New("the cluster has a quorum, so there is nothing to recover")

// Of lists the ways out. It returns ErrQuorum if a quorum serves. volumes are the claims of
// the cluster's members, by name; nil if the user may not see them.
func Of(c *observe.Cluster, volumes map[string]corev1.PersistentVolumeClaimPhase) (*Report, error) {
	if hasQuorum(c) {
		return nil, ErrQuorum
	}
	s := summary.Of(c, nil)
	r := &Report{Name: s.Name, Namespace: s.Namespace, Voters: s.Voters, Missing: []Missing{}, Survivors: survivors(c), Backups: []Backup{}}
	if rec := c.Object.Status.Record; rec != nil && rec.Revision > 0 {
		r.Recorded = &Recorded{Revision: rec.Revision, RaftIndex: rec.RaftIndex, Time: rec.LastUpdateTime}
	}
	if r.Voters == 0 {
		r.Voters = recordedMembers(c)
	}
	for _, m := range missing(c, s) {
		m.Volume = volumes[m.Name]
		m.MayReturn = mayReturn(c, m, volumes == nil)
		r.Missing = append(r.Missing, m)
	}
	known := r.recordedRevision()
	for i := range r.Survivors {
		v := &r.Survivors[i]
		v.Behind = max(0, r.recordedRevision()-v.Revision)
		known = max(known, v.Revision)
	}
	for i := range c.Backups {
		st := c.Backups[i].Status
		if st.Key == "" || st.EtcdRevision == 0 {
			continue
		}
		b := Backup{Name: c.Backups[i].Name, Key: st.Key, Revision: st.EtcdRevision, Behind: max(0, known-st.EtcdRevision)}
		if st.LastSuccessDate != nil {
			b.Taken = &st.LastSuccessDate.Time
		}
		r.Backups = append(r.Backups, b)
	}
	slices.SortStableFunc(r.Backups, func(a, b Backup) int { return cmp.Compare(b.Revision, a.Revision) })
	return r, nil
}

// hasQuorum reports whether a quorum has confirmed anything through any member.
func hasQuorum(c *observe.Cluster) bool {
	return c.Agreed || slices.ContainsFunc(c.Answers, func(a observe.Answer) bool { return a.Commits == nil })
}

func (r *Report) recordedRevision() int64 {
	if r.Recorded == nil {
		return 0
	}
	return r.Recorded.Revision
}

// Best returns the survivor that the backup operator chooses: the fit one with the highest
// revision. It is nil if there is none.
func (r *Report) Best() *Survivor {
	for i := range r.Survivors {
		if r.Survivors[i].Unfit == "" {
			return &r.Survivors[i]
		}
	}
	return nil
}

// survivors are the members that answer, the best first.
func survivors(c *observe.Cluster) []Survivor {
	list := []Survivor{}
	for _, a := range c.Answers {
		if a.Err == nil {
			list = append(list, Survivor{Name: a.Pod, Revision: a.Status.Revision, RaftIndex: a.Status.RaftIndex, Unfit: unfit(c, &a)})
		}
	}
	slices.SortStableFunc(list, func(a, b Survivor) int {
		return cmp.Or(boolFirst(a.Unfit == "", b.Unfit == ""), cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.RaftIndex, a.RaftIndex))
	})
	return list
}

func boolFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// unfit returns why a cluster can't continue from a member's data.
func unfit(c *observe.Cluster, a *observe.Answer) string {
	if a.Status.Learner {
		return "it is a learner, and etcd makes no snapshots of learners"
	}
	if rec := c.Object.Status.Record; rec != nil && rec.ClusterID != "" && rec.ClusterID != etcd.FormatID(a.Status.ClusterID) {
		return fmt.Sprintf("it belongs to another cluster: its cluster ID is %s, and %s is recorded", etcd.FormatID(a.Status.ClusterID), rec.ClusterID)
	}
	for _, other := range c.Answers {
		if other.Err != nil {
			continue
		}
		for _, alarm := range other.Status.Alarms {
			if alarm.Type == etcd.AlarmCorrupt && (alarm.MemberID == a.Status.MemberID || alarm.MemberID == 0) {
				return "it has the alarm CORRUPT: its data differs from that of others"
			}
		}
	}
	return ""
}

// missing are the voters that do not answer. If no member answers, those on record count.
func missing(c *observe.Cluster, s *summary.Summary) []Missing {
	var list []Missing
	if len(c.Members) > 0 {
		for _, m := range s.Members {
			if m.Votes() && m.Role == summary.Silent {
				list = append(list, Missing{Name: m.Name, Problem: m.Problem, Node: m.Node})
			}
		}
		return list
	}
	problems := map[string]summary.Member{}
	for _, m := range s.Members {
		problems[m.Name] = m
	}
	if rec := c.Object.Status.Record; rec != nil {
		for _, m := range rec.Members {
			p, seen := problems[m.Name]
			if !seen {
				p.Problem = "it has no pod"
			}
			list = append(list, Missing{Name: m.Name, Problem: p.Problem, Node: p.Node})
		}
	}
	return list
}

// mayReturn reports whether a missing member may come back with its data.
func mayReturn(c *observe.Cluster, m Missing, unseen bool) bool {
	if pod := c.Pod(m.Name); pod != nil {
		if p := manifest.PodStateOf(pod); !p.Finished && !p.Deleting && !p.Dataless {
			return true
		}
	}
	return m.Volume == corev1.ClaimBound || unseen && c.Object.Spec.Persistent()
}

// MayReturn reports whether enough members may come back for a quorum.
func (r *Report) MayReturn() bool {
	there := max(0, r.Voters-len(r.Missing))
	for _, m := range r.Missing {
		if m.MayReturn {
			there++
		}
	}
	return r.Voters > 0 && there >= etcd.Quorum(r.Voters)
}

func recordedMembers(c *observe.Cluster) int {
	if rec := c.Object.Status.Record; rec != nil {
		return len(rec.Members)
	}
	return 0
}

// Template returns the EtcdBackup whose store takes the backup of the survivors.
func Template(list []api.EtcdBackup, cluster, name string) (*api.EtcdBackup, error) {
	if name == "" {
		list = backups.Templates(list)
	}
	return backups.Choose(list, cluster, name)
}
