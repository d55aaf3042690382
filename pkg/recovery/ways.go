// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
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
			Message: fmt.Sprintf("%s has revision %d%s; %s", s.Name, s.Revision, s.restarted(), r.against(s.Revision, s.Behind)),
		})
	}
	for _, b := range r.Backups {
		if b.Unfit != "" || len(ways) == mostWays {
			break // they are the last
		}
		way := api.RecoveryWay{
			Way: api.RecoveryBackup, Backup: b.Name, Revision: b.Revision,
			Message: fmt.Sprintf("%s has revision %d; %s", b.Name, b.Revision, r.against(b.Revision, b.Behind)),
		}
		if b.Taken != nil {
			way.Time = b.Taken.UTC().Format(time.RFC3339)
			way.Message += "; all writes since " + way.Time + " are lost"
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
		return fmt.Sprintf("the last revision known to be committed was %d: %s lost, and later writes", last, revisionsAre(behind, "known "))
	case behind > 0:
		return fmt.Sprintf("a survivor has more: %s lost", revisionsAre(behind, ""))
	default:
		return fmt.Sprintf("the last revision known to be committed was %d: no known revision is lost; perhaps the last writes are", last)
	}
}

func revisionsAre(n int64, which string) string {
	if n == 1 {
		return "1 " + which + "revision is"
	}
	return fmt.Sprintf("%d %srevisions are", n, which)
}

// Loses says what a survivor lacks, in a few words.
func (r *Report) Loses(s Survivor) string {
	switch {
	case s.Unfit != "":
		return "cannot be used: " + s.Unfit
	case s.Behind > 0:
		return fmt.Sprintf("%d recorded revisions, and later writes", s.Behind)
	case r.Recorded == nil:
		return "unknown: no revision is recorded"
	default:
		return "no recorded revision; perhaps the last writes before the loss"
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
