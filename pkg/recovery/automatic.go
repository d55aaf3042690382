// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
)

// Bounds are what an automatic recovery may lose, and what is known of the loss.
type Bounds struct {
	// Revisions is how many known revisions may be lost.
	Revisions int64
	// Unseen is for how long before the loss writes may be lost that nobody has counted.
	Unseen time.Duration
	// LastQuorum is when the operator last saw a quorum, and Lost when it first saw none.
	LastQuorum, Lost time.Time
	// Created is when the history of the data began. A backup from before may hold another
	// history, whose revisions say nothing about this one.
	Created time.Time
	// Rewritten is true if a person has replaced the history since.
	Rewritten bool
}

// Pick is a way out within bounds.
type Pick struct {
	Way      api.ChosenWay
	Revision int64
	// Loses says what it loses, in a clause.
	Loses string
}

// clockError is by how much the clocks of two operators may differ.
const clockError = 2 * time.Minute

// Within returns the way out that loses least, of those within the bounds. If there is none, it
// returns nil and why. stores are the EtcdBackups of the cluster: one of them takes the data of a
// survivor.
func (r *Report) Within(b Bounds, stores []api.EtcdBackup) (pick *Pick, why string) {
	switch unseen := b.Lost.Sub(b.LastQuorum); {
	case r.Recorded == nil:
		return nil, "no committed revision is recorded, so nobody knows what a way out loses"
	case unseen < -clockError:
		return nil, fmt.Sprintf("the record says that the operator saw a quorum at %s, and at %s it saw none: the clocks of the operators differ, so nobody knows what a way out loses", stamp(b.LastQuorum), stamp(b.Lost))
	case unseen > b.Unseen:
		return nil, fmt.Sprintf("the operator last saw a quorum at %s, and at %s it saw none: nobody knows the writes of these %s, and recovery.maxLostInSecond is %d",
			stamp(b.LastQuorum), stamp(b.Lost), unseen.Round(time.Second), int64(b.Unseen/time.Second))
	}
	var against []string
	backup := r.backupWithin(b, &against)
	survivor := r.survivorWithin(b, &against)
	switch {
	case survivor != nil && (backup == nil || survivor.Revision >= backup.Revision):
		way := api.ChosenWay{Member: survivor.Name, Store: storeFor(stores)}
		if way.Store == "" {
			return nil, "the survivor " + survivor.Name + " is within the bounds, and its data needs a store: create an EtcdBackup of this cluster (doc/backup.md)"
		}
		return &Pick{Way: way, Revision: survivor.Revision, Loses: r.loss(survivor.Revision, Unknown)}, ""
	case backup != nil:
		return &Pick{Way: api.ChosenWay{Backup: backup.Name}, Revision: backup.Revision, Loses: r.against(backup.Revision, backup.Behind) + "; all writes since " + stamp(*backup.Complete) + " are lost"}, ""
	}
	return nil, strings.Join(against, "; ")
}

// survivorWithin returns the best survivor if it is within the bounds. Without a loss of known
// revisions, its data must also contain all recorded entries that raise no revision.
func (r *Report) survivorWithin(b Bounds, against *[]string) *Survivor {
	s := r.Best()
	switch {
	case s == nil && len(r.Survivors) > 0:
		*against = append(*against, fmt.Sprintf("survivor %s: %s", r.Survivors[0].Name, r.Survivors[0].Unfit))
	case s == nil:
		*against = append(*against, "no member answers")
	case s.Behind > b.Revisions:
		*against = append(*against, fmt.Sprintf("survivor %s: at most %s lost, and recovery.maxLostRevisions is %d", s.Name, knownAre(s.Behind), b.Revisions))
	case b.Revisions == 0 && int64(s.Applied) < r.Index: // far from 2^63
		*against = append(*against, fmt.Sprintf("survivor %s: it has applied raft entry %d, and %d is recorded: it may lack leases, users or roles, which raise no revision", s.Name, s.Applied, r.Index))
	default:
		return s
	}
	return nil
}

// Exceeds says why the log of a survivor exceeds the bounds, whatever of it is restored; "" if it does not. An
// entry raises the revision by one, or not at all.
func (r *Report) Exceeds(b Bounds, s Survivor) string {
	unapplied := max(0, int64(s.LogEnd.Index)-int64(s.Applied)) // far from 2^63
	switch least := s.Behind - unapplied; {
	case least > b.Revisions:
		return fmt.Sprintf("%s lacks at least %d known revisions, and recovery.maxLostRevisions is %d", s.Name, least, b.Revisions)
	case b.Revisions == 0 && int64(s.LogEnd.Index) < r.Index:
		return fmt.Sprintf("the log of %s ends with raft entry %d, and %d is recorded: it may lack leases, users or roles, which raise no revision", s.Name, s.LogEnd.Index, r.Index)
	}
	return ""
}

// backupWithin returns the backup with the highest revision, of those within the bounds.
func (r *Report) backupWithin(b Bounds, against *[]string) *Backup {
	for i := range r.Backups {
		k := &r.Backups[i]
		why := ""
		switch {
		case k.Unfit != "":
			why = k.Unfit
		case k.Uncertain:
			why = "no quorum confirmed it"
		case k.Complete == nil:
			why = "it is unknown when it began"
		case b.Rewritten:
			why = "a person has accepted other data of this cluster: it may hold another history"
		case !k.Complete.After(b.Created):
			why = "it is older than the EtcdCluster: it may hold another history"
		case k.Behind > b.Revisions:
			why = fmt.Sprintf("%s lost, and recovery.maxLostRevisions is %d", knownAre(k.Behind), b.Revisions)
		case b.Lost.Sub(*k.Complete) > b.Unseen:
			why = fmt.Sprintf("all writes since %s are lost, and recovery.maxLostInSecond is %d", stamp(*k.Complete), int64(b.Unseen/time.Second))
		default:
			return k
		}
		if i < mostSurvivors {
			*against = append(*against, "backup "+k.Name+": "+why)
		}
	}
	return nil
}

// storeFor returns the name of the EtcdBackup whose store takes the data of a survivor: the one
// that has stored a backup last. It is "" if there is none.
func storeFor(list []api.EtcdBackup) string {
	usable := slices.DeleteFunc(backups.Templates(list), func(b api.EtcdBackup) bool {
		return b.DeletionTimestamp != nil || b.Status.Phase == api.BackupPhaseInvalid
	})
	if len(usable) == 0 {
		return ""
	}
	last := func(b api.EtcdBackup) time.Time {
		if b.Status.LastSuccessDate == nil {
			return time.Time{}
		}
		return b.Status.LastSuccessDate.Time
	}
	return slices.MinFunc(usable, func(a, b api.EtcdBackup) int {
		return cmp.Or(last(b).Compare(last(a)), cmp.Compare(a.Name, b.Name))
	}).Name
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
