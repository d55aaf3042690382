// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backups"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// beginFromSurvivor checks the chosen survivor, and has its data stored.
func (o *Observation) beginFromSurvivor(value string, way api.ChosenWay) (*api.RecoveryChoice, Step) {
	left := o.Left()
	i := slices.IndexFunc(left.Survivors, func(s recovery.Survivor) bool { return s.Name == way.Member })
	best := left.Best()
	var fit []string
	for _, s := range left.Survivors {
		if s.Unfit == "" {
			fit = append(fit, s.Name)
		}
	}
	switch {
	case i < 0:
		return refusedChoice(value, fmt.Sprintf("no survivor is named %s; those that can be used: %s", way.Member, listed(fit))), nil
	case left.Survivors[i].Unfit != "":
		return refusedChoice(value, fmt.Sprintf("%s cannot be used: %s", way.Member, left.Survivors[i].Unfit)), nil
	}
	if why := lacks(left.Survivors[i], *best); why != "" {
		return refusedChoice(value, fmt.Sprintf("%s: choose %s", why, best.Name)), nil
	}
	like, err := backups.Template(o.Recovery.Backups, o.Names.Cluster, way.Store)
	if err != nil {
		return refusedChoice(value, fmt.Sprintf("the data of %s needs a store, and survivor=%s,store=ETCDBACKUP chooses one: %s", way.Member, way.Member, err)), nil
	}
	once, err := recovery.SurvivorBackup(like, way.Member, o.Now)
	if err != nil {
		return refusedChoice(value, err.Error()), nil
	}
	c := &api.RecoveryChoice{
		Value: value, Phase: api.RecoveryBackingUp, StartDate: o.Now.UTC().Format(time.RFC3339),
		Revision: left.Survivors[i].Revision, RaftIndex: int64(left.Survivors[i].Applied), Backup: once.Name, // far from 2^63
		Reason: "the backup operator is to store the data of " + way.Member,
	}
	return o.store(c, way, like.Name)
}

// surpassed says which survivor has more than a choice of a survivor restores; "" if none has. Members
// return, and a quorum may have been back before this operator looked. unknown says which log may have no more
// than that of the chosen one, and step has it served.
func (o *Observation) surpassed(c *api.RecoveryChoice) (news, unknown string, step Step) {
	way, err := api.ParseChosenWay(c.Value)
	if err != nil || way.Member == "" || o.committedTo(c) {
		return "", "", nil
	}
	left := o.Left()
	end := left.LogEnd(way.Member)
	stored := c.Phase == api.RecoveryRestoring || o.backup(c.Backup) != nil // store compares the logs before
	for _, s := range left.Survivors {
		switch {
		case s.Unfit != "":
		case s.Revision <= max(c.Revision, c.HighestRevision):
			if stored && end != nil && s.LogEnd != nil && s.LogEnd.Compare(*end) > 0 {
				return fmt.Sprintf("%s: choose %s; the cluster is unchanged", shorter(way.Member, *end, s.Name, *s.LogEnd), s.Name), "", nil
			}
		case s.Name == way.Member && c.Phase == api.RecoveryBackingUp:
			// It applies what it knew to be committed, and the backup will have that.
		case end != nil && s.LogEnd != nil && s.LogEnd.Compare(*end) <= 0:
			// The log of the chosen one has these entries.
		case c.Phase == api.RecoveryBackingUp && end == nil && o.hasServedLog(way.Member):
			unknown, step = o.awaitLogEnd(way.Member, s)
		case c.Phase == api.RecoveryBackingUp && s.LogEnd == nil && o.hasServedLog(s.Name):
			unknown, step = o.awaitLogEnd(s.Name, s)
		default:
			return fmt.Sprintf("%s has revision %d, and the choice restores %d: it has returned since, or a quorum has; the cluster is unchanged", s.Name, s.Revision, c.Revision), "", nil
		}
	}
	return "", unknown, step
}

// hasServedLog reports whether a container of a member's pod was to serve the log, and one can do so. The choice
// may rest on the end of this log.
func (o *Observation) hasServedLog(member string) bool {
	p := o.Pod(member)
	return p != nil && p.DataServer.Begun > 0 && (p.DataServer.Running || p.DataServer.Begun < mostServers)
}

// awaitLogEnd says that the end of a member's log decides whether a survivor has more than a choice restores.
func (o *Observation) awaitLogEnd(member string, s recovery.Survivor) (why string, step Step) {
	p := o.Pod(member)
	if !p.DataServer.Running {
		step = serveNext(p)
	}
	return fmt.Sprintf("the end of the log of %s is not known%s, and decides whether %s, at revision %d, has more than the choice restores: the operator asks the container of the pod %s that serves the log again; kubectl describe pod %s shows it",
		member, reasonOf(p.DataServer), s.Name, s.Revision, member, member), step
}

// lacks says what a survivor may lack that a better one has; "" if nothing is known.
func lacks(s, best recovery.Survivor) string {
	switch {
	case s.LogEnd != nil && best.LogEnd != nil:
		if s.LogEnd.Compare(*best.LogEnd) >= 0 {
			return ""
		}
		return shorter(s.Name, *s.LogEnd, best.Name, *best.LogEnd)
	case s.Revision < best.Revision:
		return fmt.Sprintf("%s has revision %d, and %s has %d", s.Name, s.Revision, best.Name, best.Revision)
	case s.Revision == best.Revision && s.Applied < best.Applied:
		return fmt.Sprintf("%s has applied raft entry %d, and %s has applied %d: it may lack leases, users or roles", s.Name, s.Applied, best.Name, best.Applied)
	}
	return ""
}

// shorter says that the log of a survivor ends before that of another one.
func shorter(name string, end recovery.LogEnd, other string, otherEnd recovery.LogEnd) string {
	return fmt.Sprintf("the log of %s ends with raft entry %d of term %d, and that of %s with %d of term %d: a quorum may have agreed on what it lacks",
		name, end.Index, end.Term, other, otherEnd.Index, otherEnd.Term)
}

// store is the next step towards the stored data of a survivor. What another one lacks shows only now.
func (o *Observation) store(c *api.RecoveryChoice, way api.ChosenWay, like string) (*api.RecoveryChoice, Step) {
	if why, step := o.serveLogs(way.Member, c); why != "" {
		return waitingChoice(c, why), step
	}
	left := o.Left()
	if chosen, best := left.Survivor(way.Member), left.LongestLog(); chosen != nil && chosen.LogEnd != nil && best != nil {
		switch why := lacks(*chosen, *best); {
		case why != "" && c.Automatic:
			if beyond := left.Exceeds(o.bounds(), *best); beyond != "" {
				return failedChoice(c.Value, c, fmt.Sprintf("%s; %s; the cluster is unchanged", why, beyond)), nil
			}
			return o.begin(api.ChosenWay{Member: best.Name, Store: way.Store}.String())
		case why != "":
			return failedChoice(c.Value, c, fmt.Sprintf("%s: choose %s; the cluster is unchanged", why, best.Name)), nil
		}
	}
	return c, StoreSurvivor{Member: way.Member, Like: like, Begun: c.StartDate}
}

// awaitSurvivorBackup commits to the stored data of the survivor.
func (o *Observation) awaitSurvivorBackup(old *api.RecoveryChoice) (*api.RecoveryChoice, Step) {
	way, err := api.ParseChosenWay(old.Value)
	if err != nil {
		return failedChoice(old.Value, old, err.Error()), nil
	}
	stored := o.backup(old.Backup)
	if stored == nil {
		like, err := backups.Template(o.Recovery.Backups, o.Names.Cluster, way.Store)
		if err != nil {
			return failedChoice(old.Value, old, err.Error()), nil
		}
		return o.store(old, way, like.Name)
	}
	st := stored.Status
	why, step := o.serve(way.Member)
	foreign := recovery.Foreign(o.Record, st.ClusterID)
	switch {
	case st.Phase == api.BackupPhaseInvalid || st.Phase == api.BackupPhaseFailed:
		return failedChoice(old.Value, old, fmt.Sprintf("the EtcdBackup %s is %s: %s; the cluster is unchanged", old.Backup, st.Phase, st.Reason)), nil
	case !st.Succeeded && why != "":
		return waitingChoice(old, why), step
	case !st.Succeeded && st.Phase == api.BackupPhaseNone:
		return waitingChoice(old, "the backup operator has not seen the EtcdBackup "+old.Backup), nil
	case !st.Succeeded && st.Reason != "":
		return waitingChoice(old, fmt.Sprintf("the EtcdBackup %s is %s: %s", old.Backup, st.Phase, st.Reason)), nil
	case !st.Succeeded:
		return waitingChoice(old, fmt.Sprintf("the EtcdBackup %s is %s", old.Backup, st.Phase)), nil
	case !st.Uncertain:
		return failedChoice(old.Value, old, "a quorum has confirmed the EtcdBackup "+old.Backup+", so there is one; the cluster is unchanged"), nil
	case foreign != "":
		return failedChoice(old.Value, old, fmt.Sprintf("the EtcdBackup %s %s; the cluster is unchanged", old.Backup, foreign)), nil
	case st.EtcdRevision < old.Revision:
		return failedChoice(old.Value, old, fmt.Sprintf("the EtcdBackup %s has revision %d, and the survivor had %d: it is of another one; the cluster is unchanged", old.Backup, st.EtcdRevision, old.Revision)), nil
	case st.RaftIndex > 0 && st.RaftIndex < old.RaftIndex:
		return failedChoice(old.Value, old, fmt.Sprintf("the EtcdBackup %s has raft entry %d, and the survivor had applied %d: it is of another one, or the survivor has restarted and lost entries; it may lack leases, users or roles; the cluster is unchanged", old.Backup, st.RaftIndex, old.RaftIndex)), nil
	}
	c := *old
	c.Phase, c.Revision, c.Reason = api.RecoveryRestoring, st.EtcdRevision, ""
	unapplied := int64(recovery.Unknown)
	if n := st.UnappliedEntries; n != nil && *n >= 0 {
		unapplied, c.HighestRevision = *n, st.EtcdRevision+*n
	}
	c.Message = o.Left().Restored(st.EtcdRevision, unapplied)
	return o.awaitRestore(&c)
}
