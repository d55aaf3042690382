// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var lostAt = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// loss is what is left of a cluster of three, of which one member answers.
type loss struct {
	Facts
	Bounds
}

func (l *loss) survivor() *etcd.Status { return l.Members[0].Status }

// backedUp adds an EtcdBackup whose newest backup began so long before the loss.
func (l *loss) backedUp(name string, revision int64, before time.Duration) *api.EtcdBackup {
	begun, done := lostAt.Add(-before), metav1.NewTime(lostAt.Add(-before+time.Second))
	b := api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.StorageType, b.Spec.S3 = api.BackupStorageTypeS3, &api.S3BackupSource{Path: "bucket/" + name}
	b.Spec.BackupPolicy = &api.BackupPolicy{BackupIntervalInSecond: 60}
	b.Status = api.BackupStatus{Key: backupobject.Key("bucket/"+name, revision, begun), EtcdRevision: revision, ClusterID: "7", LastSuccessDate: &done}
	l.Backups = append(l.Backups, b)
	return &l.Backups[len(l.Backups)-1]
}

func lose(revision int64) *loss {
	return &loss{
		Facts{Record: &api.ClusterRecord{ClusterID: "7", Revision: 80, RaftIndex: 500}, Members: []Member{
			{Missing: Missing{Name: "a"}, Status: &etcd.Status{MemberID: 1, ClusterID: 7, Revision: revision, RaftIndex: 500, RaftApplied: 500}},
			{Missing: Missing{Name: "b"}}, {Missing: Missing{Name: "c"}},
		}},
		Bounds{Unseen: 2 * time.Minute, LastQuorum: lostAt.Add(-8 * time.Second), Lost: lostAt, Created: lostAt.Add(-24 * time.Hour)},
	}
}

func TestTheWayOutWithinTheBoundsThatLosesLeast(t *testing.T) {
	for name, test := range map[string]struct {
		revision int64 // of the survivor
		change   func(*loss)
		want     string // the way
		why      string // part of it, if there is none
	}{
		"the survivor has all that is known": {80, func(l *loss) { l.backedUp("n", 70, time.Hour) }, "survivor=a,store=n", ""},
		"the survivor has more":              {81, func(l *loss) { l.backedUp("n", 70, time.Hour) }, "survivor=a,store=n", ""},
		"it lacks a revision": {
			79, func(l *loss) { l.backedUp("n", 70, time.Hour) }, "",
			"backup n: 10 known revisions are lost, and recovery.maxLostRevisions is 0; survivor a: at most 1 known revision is lost, and recovery.maxLostRevisions is 0",
		},
		"it lacks a revision, and may": {79, func(l *loss) { l.Revisions = 1; l.backedUp("n", 70, time.Hour) }, "survivor=a,store=n", ""},
		"it lacks more than it may":    {77, func(l *loss) { l.Revisions = 2; l.backedUp("n", 70, time.Hour) }, "", "3 known revisions are lost"},
		"it lacks an entry without a revision": {80, func(l *loss) {
			l.survivor().RaftApplied = 499
			l.backedUp("n", 70, time.Hour)
		}, "", "it may lack leases, users or roles"},
		"another one knows more entries, and has applied fewer": {80, func(l *loss) {
			l.Members[1].Status = &etcd.Status{MemberID: 2, ClusterID: 7, Revision: 80, RaftIndex: 510, RaftApplied: 490}
			l.backedUp("n", 70, time.Hour)
		}, "survivor=a,store=n", ""},
		"it knows an entry, and has not applied it": {80, func(l *loss) {
			l.survivor().RaftApplied, l.survivor().RaftIndex = 499, 501
			l.backedUp("n", 70, time.Hour)
		}, "", "it has applied raft entry 499, and 500 is recorded"},
		"the status knows of later revisions":  {80, func(l *loss) { l.LastRevision = 81; l.backedUp("n", 70, time.Hour) }, "", "1 known revision is lost"},
		"it belongs to another cluster":        {90, func(l *loss) { l.survivor().ClusterID = 8; l.backedUp("n", 70, time.Hour) }, "", "it belongs to another cluster"},
		"nothing is recorded":                  {80, func(l *loss) { l.Record = nil; l.backedUp("n", 90, time.Second) }, "", "no committed revision is recorded"},
		"there is no store":                    {80, func(*loss) {}, "", "its data needs a store"},
		"the only store is that of an attempt": {80, func(l *loss) { l.backedUp("n-manual-20261122-110000", 70, time.Hour).Status.Uncertain = true }, "", "its data needs a store"},
		"the only store can't be used":         {80, func(l *loss) { l.backedUp("n", 70, time.Hour).Status.Phase = api.BackupPhaseInvalid }, "", "its data needs a store"},
		"the store that was used last":         {80, func(l *loss) { l.backedUp("m", 70, time.Hour); l.backedUp("n", 71, time.Minute) }, "survivor=a,store=n", ""},
		"the operator had not looked for long": {80, func(l *loss) { l.LastQuorum = lostAt.Add(-time.Hour); l.backedUp("n", 70, time.Hour) }, "", "nobody knows the writes of these 1h0m0s, and recovery.maxLostInSecond is 120"},
		"the operator may not have looked": {80, func(l *loss) {
			l.Unseen, l.LastQuorum = time.Hour, lostAt.Add(-time.Hour)
			l.backedUp("n", 70, time.Hour)
		}, "survivor=a,store=n", ""},
		"its clock was another one's":            {80, func(l *loss) { l.LastQuorum = lostAt.Add(time.Hour); l.backedUp("n", 70, time.Hour) }, "", "the clocks of the operators differ"},
		"nobody knows when it looked":            {80, func(l *loss) { l.LastQuorum = time.Time{}; l.backedUp("n", 80, time.Second) }, "", "nobody knows the writes"},
		"a backup has more than the survivor":    {80, func(l *loss) { l.backedUp("n", 82, time.Second) }, "backup=n", ""},
		"a backup has as much as the survivor":   {80, func(l *loss) { l.backedUp("n", 80, time.Second) }, "survivor=a,store=n", ""},
		"a backup has all, the survivor has not": {79, func(l *loss) { l.backedUp("m", 80, time.Minute); l.backedUp("n", 70, time.Second) }, "backup=m", ""},
		"the backup is too old":                  {79, func(l *loss) { l.backedUp("n", 80, time.Hour) }, "", "backup n: all writes since 2026-11-22T11:00:00Z are lost, and recovery.maxLostInSecond is 120"},
		"the backup may be that old":             {79, func(l *loss) { l.Unseen = time.Hour; l.backedUp("n", 80, time.Hour) }, "backup=n", ""},
		"the backup lacks what a survivor has": {82, func(l *loss) {
			l.survivor().ClusterID = 7
			l.survivor().Learner = true
			l.backedUp("n", 80, time.Second)
		}, "", "2 known revisions are lost"},
		"the backup is of another history": {79, func(l *loss) {
			l.Created = lostAt.Add(-time.Minute)
			l.Unseen = time.Hour
			l.backedUp("n", 9000, 2*time.Minute)
		}, "", "older than the EtcdCluster"},
		"a person has accepted other data":   {79, func(l *loss) { l.Rewritten = true; l.backedUp("n", 90, time.Second) }, "", "another history"},
		"the backup is of a lost quorum":     {79, func(l *loss) { l.backedUp("n", 80, time.Second).Status.Uncertain = true }, "", "no quorum confirmed it"},
		"nobody knows when the backup began": {79, func(l *loss) { l.backedUp("n", 80, time.Second).Status.Key = "bucket/n" }, "", "unknown when it began"},
		"the log takes the backup far enough": {79, func(l *loss) {
			end := metav1.NewTime(lostAt.Add(-5 * time.Second))
			l.backedUp("n", 70, time.Hour).Status.Continuous = &api.ContinuousStatus{ClusterID: "7", NewestRevision: 80, NewestDate: &end}
		}, "backup=n", ""},
		"the end of the log is unknown": {79, func(l *loss) {
			l.backedUp("n", 70, time.Second).Status.Continuous = &api.ContinuousStatus{ClusterID: "7", NewestRevision: 80}
		}, "", "unknown when it began"},
		"the backup is of another cluster": {79, func(l *loss) { l.backedUp("n", 80, time.Second).Status.ClusterID = "0000000000000008" }, "", "backup n: it comes from another cluster: its cluster ID is 8, and 7 is recorded"},
		"the backup is of this cluster":    {79, func(l *loss) { l.backedUp("n", 80, time.Second).Status.ClusterID = "0000000000000007" }, "backup=n", ""},
		"nobody answers":                   {0, func(l *loss) { l.Members[0].Status = nil; l.backedUp("n", 80, time.Hour) }, "", "no member answers"},
	} {
		l := lose(test.revision)
		test.change(l)
		pick, why := Of(l.Facts).Within(l.Bounds, l.Backups)
		got := ""
		if pick != nil {
			got = pick.Way.String()
		}
		if got != test.want || (pick == nil) != (why != "") || !strings.Contains(why, test.why) {
			t.Errorf("%s: the way is %q, want %q; the reason %q, want %q", name, got, test.want, why, test.why)
		}
	}
}
