// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	// slowFsync is the p99 in seconds that etcd's documentation asks disks to stay below.
	slowFsync = 0.010
	// fewFsyncs is below what a p99 needs: the p99 of a member that has just started is
	// its slowest write.
	fewFsyncs = 100
	// nearQuota is the part of the quota from which a database is called nearly full.
	nearQuota = 0.8
	// fragmented is the part of a database in use below which a defragmentation pays.
	fragmented, worthDefragmenting = 0.5, 256 << 20
	// overdue is how long an operator may take to look at an edit.
	overdue = time.Minute
)

// advice is what a person should do, the most urgent first.
func advice(c *observe.Cluster, s *Summary) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if Contradicted(c) {
		add("data may be lost: stop the clients that write, and read \"When the operator says that data may be lost\" in doc/disaster.md")
	}
	if s.Voters > 0 && s.Tolerates < 0 && !c.Agreed && s.Source == FromMembers {
		add("the quorum is lost, delete no volume and no pod: %s shows the ways out", hint.Etcd(s.Place(), "recover", s.Name))
	}
	if s.State == Down {
		add("find the cause: %s; then see doc/disaster.md", hint.Etcd(s.Place(), "doctor", s.Name))
	}
	if s.Paused {
		add("the operator is paused and replaces no members: %s", hint.Etcd(s.Place(), "resume", s.Name))
	}
	if unseen(c) {
		add("no operator has looked at the last edit: check that the etcd operator runs")
	}
	adviseCertificates(c, s, add)
	for _, m := range s.Members {
		adviseMember(s, m, add)
	}
	adviseSpread(s, add)
	adviseBackups(c, s, add)
	if s.Size%2 == 0 && s.Size > 0 {
		add("size %d tolerates no more losses than size %d: use an odd size", s.Size, s.Size-1)
	}
	return list
}

// unseen reports whether an edit is old and no operator has looked at it.
func unseen(c *observe.Cluster) bool {
	obj := c.Object
	if obj.Status.ObservedGeneration >= obj.Generation {
		return false
	}
	edited := obj.CreationTimestamp.Time
	for _, f := range obj.ManagedFields {
		if f.Subresource == "" && f.Time != nil && f.Time.After(edited) {
			edited = f.Time.Time
		}
	}
	return age(c, edited) > overdue
}

type adder func(format string, args ...any)

func adviseCertificates(c *observe.Cluster, s *Summary, add adder) {
	said := false
	for _, cert := range s.Certificates {
		what := cert.Use + " certificate"
		if cert.CA != "" {
			what = "CA of the " + what
		}
		switch {
		case cert.Problem != "":
			add("%s", cert.Problem)
		case cert.Expired:
			add("%s has expired: renew the Secret %s", what, cert.Secret)
		case cert.Expiring:
			add("%s expires in %d days: renew the Secret %s", what, cert.days(), cert.Secret)
		default:
			continue
		}
		said = true
	}
	if valid := c.Condition(api.ClusterConditionCertificatesValid); !said && valid != nil && valid.Status == corev1.ConditionFalse {
		add("%s", valid.Message)
	}
}

func adviseMember(s *Summary, m Member, add adder) {
	if m.slowDisk {
		add("%s: slow disk, fsync p99 %s (etcd wants less than 10 ms)", m.Name, Seconds(*m.FsyncP99))
	}
	switch {
	case m.DBQuota > 0 && float64(m.DBSize) >= nearQuota*float64(m.DBQuota):
		add("%s: the database fills %.0f %% of its quota of %s: compact and defragment it, or raise --quota-backend-bytes",
			m.Name, 100*float64(m.DBSize)/float64(m.DBQuota), Bytes(m.DBQuota))
	case m.DBSize >= worthDefragmenting && float64(m.DBInUse) < fragmented*float64(m.DBSize):
		add("%s: %s of the database are free: defragment it", m.Name, Bytes(m.DBSize-m.DBInUse))
	}
	if m.Restarts >= 3 {
		add("%s: etcd has restarted %d times: %s", m.Name, m.Restarts, hint.Kubectl(s.Place(), "logs", "--previous", "-c", "etcd", m.Name))
	}
}

// adviseSpread looks for a node or zone whose loss takes the quorum.
func adviseSpread(s *Summary, add adder) {
	if s.Voters < 3 {
		return
	}
	nodes, zones, zoned := map[string]int{}, map[string]int{}, true
	for _, m := range s.Members {
		if m.Votes() && m.Node != "" {
			nodes[m.Node]++
			zones[m.Zone]++
			zoned = zoned && m.Zone != ""
		}
	}
	for _, place := range []struct {
		kind   string
		counts map[string]int
		use    bool
	}{{"node", nodes, true}, {"zone", zones, zoned && len(zones) > 1}} {
		for _, name := range slices.Sorted(maps.Keys(place.counts)) {
			n := place.counts[name]
			if place.use && s.Voters-n < s.Voters/2+1 {
				add("%d of %d voters run in the %s %s: its loss takes the quorum", n, s.Voters, place.kind, name)
			}
		}
	}
}

func adviseBackups(c *observe.Cluster, s *Summary, add adder) {
	if c.NoBackups != nil {
		return
	}
	if len(s.Backups) == 0 {
		add("no EtcdBackup names this cluster: see doc/backup.md")
		return
	}
	for _, b := range s.Backups {
		switch {
		case b.Failing != "":
			add("backup %s fails: %s", b.Name, b.Failing)
		case b.Unlogged != "":
			add("the log of changes of backup %s does not continue: %s", b.Name, b.Unlogged)
		case b.Unproved != "":
			add("the last restore test of backup %s did not pass: %s", b.Name, b.Unproved)
		case b.Taken != nil && !b.Verified:
			add("backup %s was taken without a quorum: back up again", b.Name)
		case b.Next != nil && age(c, *b.Next) > 10*time.Minute:
			add("backup %s is overdue since %s: check that the backup operator runs", b.Name, b.Next.UTC().Format(time.RFC3339))
		case b.Phase == api.BackupPhaseNone:
			add("no operator has seen the EtcdBackup %s: check that the backup operator runs", b.Name)
		case b.Phase == api.BackupPhaseSuspended:
			add("backup %s is suspended", b.Name)
		}
	}
}
