// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recovery lists the ways out for a cluster that has lost its quorum, each with what
// it loses. The etcd operator and the plugin share it, so both state the same. It asks nobody
// anything.
package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Facts are what is known of a cluster without a quorum.
type Facts struct {
	// Record is the last state that a quorum agreed on; nil if nobody wrote one.
	Record *api.ClusterRecord
	// LastRevision is the highest revision that was known to be committed at an earlier look; 0 if none was.
	// A survivor that has it may be gone.
	LastRevision int64
	// RestoredFrom is the key of the backup that the cluster began from; "": none. Its cluster had
	// another ID.
	RestoredFrom string
	Members      []Member
	// Backups are the EtcdBackups of the cluster.
	Backups []api.EtcdBackup
}

// Member is a member of a cluster without a quorum.
type Member struct {
	Missing
	Learner bool
	// Status is nil if the member does not answer.
	Status *etcd.Status
	// NotServing is true if Status is what its metrics say: it has started without a quorum, and serves
	// no clients. Its cluster ID is unknown then.
	NotServing bool
}

// Report is what is left of a cluster without a quorum, and the ways out.
type Report struct {
	// Voters is how many members have a vote; 0 if nobody knows.
	Voters int `json:"voters"`
	// Recorded is the last state that the operator wrote down while there was a quorum; nil
	// if it wrote none.
	Recorded *Recorded `json:"recorded,omitempty"`
	// known is the highest revision that a quorum is known to have committed. A member applies nothing else.
	known int64
	// Index is the highest raft index on record; 0 if there is none.
	Index int64 `json:"-"`
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
	// LogEnd is the end of its write-ahead log; nil if it is unknown.
	LogEnd *LogEnd `json:"-"`
}

// Survivor is a member that answers.
type Survivor struct {
	Name      string `json:"name"`
	Revision  int64  `json:"revision"`
	RaftTerm  uint64 `json:"raftTerm"`
	RaftIndex uint64 `json:"raftIndex"`
	// Applied is the last raft entry in its data.
	Applied uint64 `json:"-"`
	// LogEnd is the end of its write-ahead log; nil if it is unknown.
	LogEnd *LogEnd `json:"-"`
	// Behind is how many known revisions it lacks.
	Behind int64 `json:"behind"`
	// NotServing is true if it has started without a quorum, and serves no clients.
	NotServing bool `json:"notServing,omitempty"`
	// Unfit is why the cluster can't continue from its data; empty if it can.
	Unfit string `json:"unfit,omitempty"`
}

// Backup is the newest backup of an EtcdBackup.
type Backup struct {
	Name     string     `json:"name"`
	Key      string     `json:"key"`
	Revision int64      `json:"revision"`
	Taken    *time.Time `json:"taken,omitempty"`
	// Complete is the time up to which it holds all writes: the beginning of the backup, or the
	// end of its log; nil if unknown.
	Complete *time.Time `json:"-"`
	// Uncertain is true if no quorum confirmed the backup.
	Uncertain bool `json:"-"`
	// Log is true if the log of changes after the backup takes it to the revision.
	Log bool `json:"log,omitempty"`
	// ClusterID is that of the log.
	ClusterID string `json:"-"`
	// Behind is how many known revisions it lacks.
	Behind int64 `json:"behind"`
	// Unfit is why the cluster can't continue from it; empty if it can.
	Unfit string `json:"unfit,omitempty"`
}

// Of lists the ways out.
func Of(f Facts) *Report {
	r := &Report{Missing: []Missing{}, Survivors: []Survivor{}, Backups: []Backup{}}
	if rec := f.Record; rec != nil && rec.Revision > 0 {
		r.Recorded = &Recorded{Revision: rec.Revision, RaftIndex: rec.RaftIndex, Time: rec.LastUpdateTime}
	}
	if f.Record != nil {
		r.Index = f.Record.RaftIndex
	}
	if r.Recorded == nil && f.LastRevision > 0 {
		r.Recorded = &Recorded{Revision: f.LastRevision}
	}
	r.known = f.committed()
	for _, m := range f.Members {
		if !m.Learner {
			r.Voters++
		}
		switch {
		case m.Status != nil:
			s := Survivor{Name: m.Name, Revision: m.Status.Revision, RaftTerm: m.Status.RaftTerm, RaftIndex: m.Status.RaftIndex, Applied: m.Status.RaftApplied, LogEnd: m.LogEnd, NotServing: m.NotServing, Unfit: unfit(f, m)}
			if r.Recorded != nil {
				s.Behind = max(0, r.known-s.Revision)
			}
			r.Survivors = append(r.Survivors, s)
		case !m.Learner:
			r.Missing = append(r.Missing, m.Missing)
		}
	}
	known := !slices.ContainsFunc(r.Survivors, func(s Survivor) bool { return s.Unfit == "" && s.LogEnd == nil })
	slices.SortStableFunc(r.Survivors, func(a, b Survivor) int {
		logs := 0
		if known && a.Unfit == "" && b.Unfit == "" {
			logs = b.LogEnd.Compare(*a.LogEnd)
		}
		return cmp.Or(boolFirst(a.Unfit == "", b.Unfit == ""), logs, cmp.Compare(b.Revision, a.Revision), cmp.Compare(b.Applied, a.Applied), cmp.Compare(b.RaftIndex, a.RaftIndex), cmp.Compare(a.Name, b.Name))
	})
	r.addBackups(f)
	return r
}

// committed returns the highest revision that a quorum is known to have committed; 0 if none is known.
func (f Facts) committed() int64 {
	known := f.LastRevision
	if f.Record != nil {
		known = max(known, f.Record.Revision)
	}
	for _, m := range f.Members {
		if m.Status == nil {
			continue
		}
		own := m.NotServing || Foreign(f.Record, etcd.FormatID(m.Status.ClusterID)) == ""
		if unfit(f, m) == "" || m.Status.Learner && own {
			known = max(known, m.Status.Revision)
		}
	}
	return known
}

func (r *Report) addBackups(f Facts) {
	for i := range f.Backups {
		st := f.Backups[i].Status
		if st.Key == "" || st.EtcdRevision == 0 {
			continue
		}
		b := Backup{Name: f.Backups[i].Name, Key: st.Key, Revision: st.EtcdRevision, Uncertain: st.Uncertain}
		if _, begun, ok := backupobject.ParseKey(f.Backups[i].Spec.Path(), st.Key); ok {
			b.Complete = &begun
		}
		if st.LastSuccessDate != nil {
			b.Taken = &st.LastSuccessDate.Time
		}
		if st.Key != f.RestoredFrom {
			b.Unfit = f.foreign(st.ClusterID)
		}
		if log := st.Continuous; f.continues(log, &st) {
			b.Log, b.Revision, b.ClusterID = true, log.NewestRevision, log.ClusterID
			b.Complete = nil
			if log.NewestDate != nil {
				b.Taken, b.Complete = &log.NewestDate.Time, &log.NewestDate.Time
			}
		}
		b.Behind = max(0, r.known-b.Revision)
		r.Backups = append(r.Backups, b)
	}
	slices.SortStableFunc(r.Backups, func(a, b Backup) int {
		return cmp.Or(boolFirst(a.Unfit == "", b.Unfit == ""), cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Name, b.Name))
	})
}

// continues reports whether a log takes a backup further: both are of this cluster, and the log has no
// gap since the backup.
func (f Facts) continues(log *api.ContinuousStatus, backup *api.BackupStatus) bool {
	return log != nil && f.Record != nil && sameID(f.Record.ClusterID, log.ClusterID) && sameID(backup.ClusterID, log.ClusterID) &&
		backup.EtcdRevision >= log.StartRevision-1 && log.NewestRevision > backup.EtcdRevision
}

// foreign returns why nothing of another etcd cluster may be used; "" if the ID is that of this
// one, or if one of both is unknown. A cluster of the same name may have been deleted, or it was
// restored since: its revisions are of another history.
func (f Facts) foreign(id string) string {
	if why := Foreign(f.Record, id); why != "" {
		return "it " + why + "; to give up the cluster for its data, create an EtcdRestore"
	}
	return ""
}

// Foreign says that a cluster ID is not the recorded one; "" if it is, or if one of both is unknown.
func Foreign(record *api.ClusterRecord, id string) string {
	if id == "" || record == nil || record.ClusterID == "" || sameID(id, record.ClusterID) {
		return ""
	}
	return fmt.Sprintf("comes from another cluster: its cluster ID is %s, and %s is recorded", strings.TrimLeft(id, "0"), record.ClusterID)
}

// sameID compares IDs of clusters with and without leading zeros.
func sameID(a, b string) bool { return strings.TrimLeft(a, "0") == strings.TrimLeft(b, "0") }

// LastRevision is the highest revision that a quorum is known to have committed: the recorded one, or that
// of a survivor. It is 0 if none is recorded: the most advanced survivor may lack any number of writes.
func (r *Report) LastRevision() int64 {
	if r.Recorded == nil {
		return 0
	}
	return r.known
}

// Best returns the fit survivor to continue from: the one with the longest log, if the logs of all are
// known, and otherwise the one that has applied most. It is nil if there is none.
func (r *Report) Best() *Survivor {
	if len(r.Survivors) == 0 || r.Survivors[0].Unfit != "" {
		return nil
	}
	return &r.Survivors[0]
}

// LongestLog returns the fit survivor whose log ends last, of those whose end is known; nil if there is none.
func (r *Report) LongestLog() *Survivor {
	var longest *Survivor
	for i := range r.Survivors {
		s := &r.Survivors[i]
		if s.Unfit == "" && s.LogEnd != nil && (longest == nil || s.LogEnd.Compare(*longest.LogEnd) > 0) {
			longest = s
		}
	}
	return longest
}

// LogEnd returns the end of the log of a member, whether it answers or not; nil if it is unknown.
func (r *Report) LogEnd(member string) *LogEnd {
	if s := r.Survivor(member); s != nil {
		return s.LogEnd
	}
	if i := slices.IndexFunc(r.Missing, func(m Missing) bool { return m.Name == member }); i >= 0 {
		return r.Missing[i].LogEnd
	}
	return nil
}

// Survivor returns the survivor of a name; nil if there is none.
func (r *Report) Survivor(name string) *Survivor {
	if i := slices.IndexFunc(r.Survivors, func(s Survivor) bool { return s.Name == name }); i >= 0 {
		return &r.Survivors[i]
	}
	return nil
}

// MayReturn reports whether enough members may come back for a quorum.
func (r *Report) MayReturn() bool {
	there := r.Voters - len(r.Missing)
	for _, m := range r.Missing {
		if m.MayReturn {
			there++
		}
	}
	return r.Voters > 0 && there >= etcd.Quorum(r.Voters)
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
func unfit(f Facts, m Member) string {
	if m.Status.Learner {
		return "it is a learner, and etcd makes no snapshots of learners"
	}
	if id := etcd.FormatID(m.Status.ClusterID); !m.NotServing && f.Record != nil && f.Record.ClusterID != "" && f.Record.ClusterID != id {
		return fmt.Sprintf("it belongs to another cluster: its cluster ID is %s, and %s is recorded", id, f.Record.ClusterID)
	}
	for _, other := range f.Members {
		if other.Status == nil {
			continue
		}
		for _, alarm := range other.Status.Alarms {
			if alarm.Type == etcd.AlarmCorrupt && (alarm.MemberID == m.Status.MemberID || alarm.MemberID == 0) {
				return "it has the alarm CORRUPT: its data differs from that of others"
			}
		}
	}
	return ""
}
