// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
)

// Pick is which backup to restore. One of its fields is set.
type Pick struct {
	Newest bool
	Before time.Time
	Key    string
	// Moment is a time that the log of changes of an EtcdBackup contains.
	Moment time.Time
}

// Restore returns the EtcdRestore of a cluster in place, from the store of an EtcdBackup.
func Restore(cluster string, from *api.EtcdBackup, pick Pick) (*api.EtcdRestore, error) {
	path := from.Spec.Path()
	spec := api.RestoreSpec{EtcdCluster: api.EtcdClusterRef{Name: cluster}, BackupStorageType: from.Spec.StorageType}
	switch {
	case pick.Key != "":
		path = pick.Key
		spec.Pick = api.RestorePickExact
	case !pick.Moment.IsZero():
		if from.Spec.Continuous == nil {
			return nil, fmt.Errorf("EtcdBackup %s has no log of changes (spec.continuous): use --newest, --before or --key", from.Name)
		}
		moment := metav1.NewTime(pick.Moment.UTC())
		spec.Pick, spec.Time = api.RestorePickNewest, &moment
	case !from.Spec.Periodic():
		if !pick.Before.IsZero() {
			return nil, fmt.Errorf("EtcdBackup %s has no schedule: use --newest or --key", from.Name)
		}
		// It has made one backup, at its path.
		spec.Pick = api.RestorePickExact
	default:
		spec.Pick = api.RestorePickNewest
		if !pick.Before.IsZero() {
			before := metav1.NewTime(pick.Before.UTC())
			spec.Before = &before
		}
	}
	source, err := at(from.Spec.BackupSource, from.Spec.StorageType, path)
	if err != nil {
		return nil, fmt.Errorf("EtcdBackup %s: %w", from.Name, err)
	}
	spec.BackupSource = source
	return &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: cluster, Namespace: from.Namespace}, Spec: spec}, nil
}

// Contents are what is known of a backup before the restore operator reads it.
type Contents struct {
	Key string
	// Revision is 0, and Taken zero, where that is not known.
	Revision  int64
	Taken     time.Time
	Uncertain bool
}

// Known returns what is known of the backup that a pick means.
func Known(from *api.EtcdBackup, pick Pick) Contents {
	newest := Contents{Key: from.Status.Key, Revision: from.Status.EtcdRevision, Uncertain: from.Status.Uncertain}
	if t := from.Status.LastSuccessDate; t != nil {
		newest.Taken = t.Time
	}
	// It holds no writes since it began.
	if _, begun, ok := backupobject.ParseKey(from.Spec.Path(), newest.Key); ok {
		newest.Taken = begun
	}
	switch {
	case !pick.Moment.IsZero():
		return Contents{Taken: pick.Moment}
	case pick.Key != "" && pick.Key == newest.Key:
		return newest
	case pick.Key != "":
		known := Contents{Key: pick.Key}
		if revision, begun, ok := backupobject.ParseKey(from.Spec.Path(), pick.Key); ok {
			known.Revision, known.Taken = revision, begun
		}
		return known
	case pick.Before.IsZero():
		return newest
	case !newest.Taken.IsZero() && !newest.Taken.After(pick.Before):
		return newest
	default:
		return Contents{} // an older one, which the status does not show
	}
}

// Current is what is known of the revision of a cluster.
type Current struct {
	// Revision is 0 where it is not known.
	Revision int64
	// Confirmed is true if a quorum confirms it now. Otherwise, later writes may be committed.
	Confirmed bool
	// Recorded is when the operator recorded it; "" if it is known otherwise.
	Recorded string
}

// against compares a revision that no quorum confirms with that of a backup.
func (c Current) against(backup int64) string {
	known := fmt.Sprintf("Revision %d is known to be committed", c.Revision)
	if c.Recorded != "" {
		known = fmt.Sprintf("The operator recorded revision %d at %s", c.Revision, c.Recorded)
	}
	loss := ""
	if c.Revision > backup {
		loss = fmt.Sprintf(": at least %s lost", revisions(c.Revision-backup))
	}
	return fmt.Sprintf("%s, and later writes are not known. The backup is at revision %d%s.", known, backup, loss)
}

// Loss says in sentences what a restore loses.
func Loss(backup Contents, pick Pick, cluster Current, now time.Time) []string {
	var list []string
	since := backup.Taken
	if since.IsZero() {
		since = pick.Before
	}
	switch current := cluster.Revision; {
	case backup.Revision == 0 || current == 0:
	case !cluster.Confirmed:
		list = append(list, cluster.against(backup.Revision))
	case current > backup.Revision:
		list = append(list, fmt.Sprintf("The cluster is at revision %d, the backup at revision %d: %s lost.", current, backup.Revision, revisions(current-backup.Revision)))
	case current == backup.Revision:
		list = append(list, fmt.Sprintf("Cluster and backup are both at revision %d: no write is lost, if the data is the same.", current))
	default:
		list = append(list, fmt.Sprintf("The cluster is at revision %d, below that of the backup (%d): it is a newer cluster. All its data is lost.", current, backup.Revision))
	}
	if !since.IsZero() {
		list = append(list, fmt.Sprintf("All writes since %s (%s ago) are lost.", since.UTC().Format(time.RFC3339), now.Sub(since).Round(time.Second)))
	}
	if backup.Key == "" && backup.Revision == 0 && pick.Moment.IsZero() {
		list = append(list, "The restore operator chooses the backup. Its last write can be much older than that time.")
	}
	if backup.Uncertain {
		list = append(list, "No quorum confirmed the backup: confirmed writes may be missing in it.")
	}
	return append(list, "The restore replaces all members. Clients cannot read or write until the first member serves the backup.")
}

func revisions(n int64) string {
	if n == 1 {
		return "1 revision is"
	}
	return fmt.Sprintf("%d revisions are", n)
}

// ParseBefore reads a time: RFC 3339, or how long ago, such as 2h.
func ParseBefore(text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: use a time such as 2026-11-21T03:30:00Z, or how long ago, such as 2h", text)
}

var errPick = errors.New("choose the backup by one of --newest, --before, --time and --key")

// Validate reports whether a pick names one way to choose.
func (p Pick) Validate() error {
	n := 0
	for _, given := range []bool{p.Newest, !p.Before.IsZero(), !p.Moment.IsZero(), p.Key != ""} {
		if given {
			n++
		}
	}
	if n != 1 || strings.TrimSpace(p.Key) != p.Key {
		return errPick
	}
	return nil
}
