// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	"github.com/etcd-operator/etcd-operator/pkg/recovery"
)

// Print prints the report for people, with the command for each way.
func (r *Report) Print(out io.Writer, now time.Time) error {
	if r.NotAsked != "" {
		fmt.Fprintf(out, "The plugin cannot ask the members: %s. What follows is the operator's report of %s.\n", r.NotAsked, r.ReportTime)
	}
	fmt.Fprintf(out, "EtcdCluster %s has lost its quorum: %s.\n", r.Name, r.headcount())
	if r.Recorded != nil {
		fmt.Fprintf(out, "The operator recorded revision %d%s. Later writes are not recorded.\n", r.Recorded.Revision, at(r.Recorded.Time))
		if last := r.LastRevision(); last > r.Recorded.Revision {
			fmt.Fprintf(out, "Revision %d is known to be committed.\n", last)
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintln(out, "Missing: "+line(m))
	}
	fmt.Fprintln(out)
	if err := r.table(out, now); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if r.Choice != nil {
		fmt.Fprintln(out, summary.Chosen(r.Choice))
	}
	if r.Automatic != nil {
		fmt.Fprintln(out, summary.Automatic(r.Automatic))
	}
	for _, sentence := range r.sentences() {
		fmt.Fprintln(out, sentence)
	}
	return nil
}

func (r *Report) headcount() string {
	if r.Voters == 0 {
		return "nobody knows its members"
	}
	return fmt.Sprintf("%d of %d members answer, and a quorum is %d", max(0, r.Voters-len(r.Missing)), r.Voters, r.Voters/2+1)
}

func at(time string) string {
	if time == "" {
		return ""
	}
	return " at " + time
}

func line(m recovery.Missing) string {
	var parts []string
	if m.Problem != "" {
		parts = append(parts, m.Problem)
	}
	if m.Node != "" {
		parts = append(parts, "node "+m.Node)
	}
	switch m.Volume {
	case "":
	case corev1.ClaimBound:
		parts = append(parts, "its volume is Bound, and may hold its data")
	default:
		parts = append(parts, "its volume is "+string(m.Volume))
	}
	return m.Name + ": " + strings.Join(parts, "; ")
}

func (r *Report) table(out io.Writer, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "WAY OUT\tREVISION\tLOSES")
	if r.MayReturn() {
		fmt.Fprintln(table, "bring the missing members back\t-\tnothing")
	}
	for _, v := range r.Survivors {
		name := v.Name
		if v.NotServing {
			name += " (restarted)"
		}
		fmt.Fprintf(table, "survivor %s\t%d\t%s\n", name, v.Revision, r.Loses(v))
	}
	for _, b := range r.Backups {
		fmt.Fprintf(table, "backup %s\t%d\t%s\n", b.Name, b.Revision, backupLoses(b, now))
	}
	return table.Flush()
}

func backupLoses(b recovery.Backup, now time.Time) string {
	text := b.Loses()
	if since := b.Since(); since != nil && b.Unfit == "" {
		text += fmt.Sprintf(": all since %s (%s ago)", since.UTC().Format(time.RFC3339), summary.Age(now.Sub(*since)))
	}
	return text
}

// sentences are what to do, in this order.
func (r *Report) sentences() []string {
	place := hint.Place{Namespace: r.Namespace, Chosen: r.chosen}
	var list []string
	survivor := "Too few members can return. Continue from the survivor: "
	if r.MayReturn() {
		list = append(list, "Bring the missing members back if their nodes, volumes or pods can return: it loses nothing.")
		survivor = "If they cannot return, continue from the survivor: "
	}
	list = append(list, "Delete no volume, and no pod without a volume, before the cluster serves again.")
	if r.Best() != nil {
		list = append(list, survivor+hint.Etcd(place, "recover", r.Name, "--from-survivor"))
	}
	fit := len(r.Backups) > 0 && r.Backups[0].Unfit == ""
	if fit {
		b := r.Backups[0]
		args := []string{"restore", r.Name, "--newest", "--from", b.Name}
		if b.Log {
			args = append(args, "--revision", strconv.FormatInt(b.Revision, 10), "--cluster-id", b.ClusterID)
		}
		list = append(list, "Or restore a backup: "+hint.Etcd(place, args...))
	}
	if r.Best() == nil && !fit {
		list = append(list, "No survivor can be used, and no EtcdBackup of this cluster has a backup: see doc/disaster.md.")
	}
	return list
}
