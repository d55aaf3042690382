// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// mostWays bounds the ways in the status, and mostSurvivors the survivors among them.
const mostWays, mostSurvivors = 20, 10

// Ways are the ways out as the status has them.
func (r *Report) Ways() []api.RecoveryWay {
	var ways []api.RecoveryWay
	if r.MayReturn() {
		ways = append(ways, api.RecoveryWay{Way: api.RecoveryReturn, Message: r.returning() + ": nothing is lost"})
	}
	for i, s := range r.Survivors {
		if s.Unfit != "" || i == mostSurvivors {
			break // they are the last
		}
		ways = append(ways, api.RecoveryWay{
			Way: api.RecoverySurvivor, Member: s.Name, Revision: s.Revision, NotServing: s.NotServing,
			RaftTerm: int64(s.RaftTerm), RaftIndex: int64(s.RaftIndex), // far from 2^63
			Message: fmt.Sprintf("%s has revision %d%s; its log may hold later ones; %s", s.Name, s.Revision, s.restarted(), r.loss(s.Revision, Unknown)),
		})
	}
	for _, b := range r.Backups {
		if b.Unfit != "" || len(ways) == mostWays {
			break // they are the last
		}
		way := api.RecoveryWay{
			Way: api.RecoveryBackup, Backup: b.Name, Revision: b.Revision,
			Message: fmt.Sprintf("%s has revision %d; %s", b.Name, b.Revision, r.without(b)),
		}
		if b.Taken != nil {
			way.Time = b.Taken.UTC().Format(time.RFC3339)
		}
		ways = append(ways, way)
	}
	return ways
}

// restarted says why a survivor serves no clients; "" if it does.
func (s Survivor) restarted() string {
	if !s.NotServing {
		return ""
	}
	return " since its restart, and serves no clients without a quorum"
}

// returning names the members that may come back.
func (r *Report) returning() string {
	var names []string
	for _, m := range r.Missing {
		if m.MayReturn {
			names = append(names, m.Name)
		}
	}
	if len(names) == 0 {
		return "the members run, and have no leader"
	}
	return "these members may come back with their data: " + strings.Join(names, ", ")
}

// against compares a revision with the last one that is known.
func (r *Report) against(revision, behind int64) string {
	last := r.LastRevision()
	switch {
	case last == 0:
		return "no committed revision is recorded, so the loss is unknown"
	case last > revision:
		return fmt.Sprintf("the last revision known to be committed was %d: %s lost, and later writes", last, knownAre(behind))
	default:
		return fmt.Sprintf("the last revision known to be committed was %d: no known revision is lost; perhaps the last writes are", last)
	}
}

// RestoredFrom says what continues from a backup, and what is lost then.
func (r *Report) RestoredFrom(b Backup) string {
	return fmt.Sprintf("revision %d is restored; %s", b.Revision, r.without(b))
}

// without says what a backup lacks.
func (r *Report) without(b Backup) string {
	text := r.against(b.Revision, b.Behind)
	if since := b.Since(); since != nil {
		text += "; all writes since " + since.UTC().Format(time.RFC3339) + " are lost"
	}
	return text
}

// Since is the time from which on all writes are lost with it; nil if unknown.
func (b Backup) Since() *time.Time { return cmp.Or(b.Complete, b.Taken) }

// Unknown says that nobody knows how many entries of its log a survivor has not applied.
const Unknown = -1

// Restored says what continues from the data of a survivor, and what is lost then. unapplied is how many
// entries its log holds after those that gave it the revision.
func (r *Report) Restored(revision, unapplied int64) string {
	log := ""
	switch {
	case unapplied == Unknown:
		log = ", and perhaps later ones from the log of the survivor"
	case unapplied == 1:
		log = ", and at most 1 later one from the log of the survivor"
	case unapplied > 1:
		log = fmt.Sprintf(", and at most %d later ones from the log of the survivor", unapplied)
	}
	return fmt.Sprintf("revision %d is restored%s; %s", revision, log, r.loss(revision, unapplied))
}

// loss compares a survivor with the last revision that is known. An entry of its log raises the revision by
// one, or not at all.
func (r *Report) loss(revision, unapplied int64) string {
	last := r.LastRevision()
	most := last - revision
	if last == 0 || most <= 0 || unapplied == 0 {
		return r.against(revision, max(0, most))
	}
	known := fmt.Sprintf("the last revision known to be committed was %d: ", last)
	if least := most - unapplied; unapplied != Unknown && least > 0 {
		return known + fmt.Sprintf("%d to %d known revisions are lost, and later writes", least, most)
	}
	return known + "at most " + knownAre(most) + " lost, and perhaps later writes"
}

func knownAre(n int64) string {
	if n == 1 {
		return "1 known revision is"
	}
	return fmt.Sprintf("%d known revisions are", n)
}

// Loses says what a survivor lacks, in a few words.
func (r *Report) Loses(s Survivor) string {
	switch {
	case s.Unfit != "":
		return "cannot be used: " + s.Unfit
	case s.Behind > 0:
		return fmt.Sprintf("at most %d known revisions, and perhaps later writes", s.Behind)
	case r.Recorded == nil:
		return "unknown: no revision is recorded"
	default:
		return "no known revision; perhaps the last writes before the loss"
	}
}

// Loses says which revisions a backup lacks, in a few words.
func (b Backup) Loses() string {
	switch {
	case b.Unfit != "":
		return "cannot be used: " + b.Unfit
	case b.Behind > 0:
		return fmt.Sprintf("%d known revisions, and later writes", b.Behind)
	}
	return "no revision that is known; perhaps later writes"
}
