// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// manyFacts are those of a large cluster with many EtcdBackups.
func manyFacts() Facts {
	f := Facts{Record: &api.ClusterRecord{ClusterID: "7", Revision: 83}}
	for i := range 15 {
		m := Member{Missing: Missing{Name: fmt.Sprintf("m%02d", i)}}
		if i%5 > 0 {
			m.Status = &etcd.Status{MemberID: uint64(i), ClusterID: 7, Revision: int64(80 + i%3)} // small
		}
		f.Members = append(f.Members, m)
	}
	for i := range 30 {
		b := api.EtcdBackup{Status: api.BackupStatus{Key: "k", EtcdRevision: int64(i / 3)}}
		b.Name = fmt.Sprintf("b%02d", i)
		f.Backups = append(f.Backups, b)
	}
	return f
}

func TestTheWaysOutAreBoundedAndAlwaysInTheSameOrder(t *testing.T) {
	f := manyFacts()
	want := Of(f).Ways()
	if len(want) != mostWays || want[0].Way != api.RecoveryReturn || want[1].Member != "m02" || want[mostSurvivors+1].Backup != "b27" {
		t.Errorf("the ways are %+v", want)
	}
	for range 20 {
		rand.Shuffle(len(f.Members), func(i, j int) { f.Members[i], f.Members[j] = f.Members[j], f.Members[i] })
		rand.Shuffle(len(f.Backups), func(i, j int) { f.Backups[i], f.Backups[j] = f.Backups[j], f.Backups[i] })
		if got := Of(f).Ways(); !slices.Equal(got[1:], want[1:]) {
			t.Fatalf("the ways are %+v, and were %+v", got, want)
		}
	}
}

func TestARestoreBeginsAboveAllKnownRevisions(t *testing.T) {
	for _, test := range []struct {
		revision, last int64
		restored       *api.RestoredFrom
		want           int64
	}{
		{80, 83, nil, Bump + 3},
		{83, 80, nil, Bump},
		{80, 83, &api.RestoredFrom{EtcdRevision: 70}, Bump + 3},
		{80, 83, &api.RestoredFrom{EtcdRevision: 70, BumpRevision: 1000}, Bump + 990},
		{80, 83, &api.RestoredFrom{EtcdRevision: 70, Revision: 60, BumpRevision: 1000}, Bump + 980},
		{80, 83, &api.RestoredFrom{EtcdRevision: 70, BumpRevision: api.MaxBumpRevision}, api.MaxBumpRevision},
	} {
		if got := BumpFor(test.revision, test.last, test.restored); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

func TestTheLogCountsOnlyInItsOwnCluster(t *testing.T) {
	b := api.EtcdBackup{Status: api.BackupStatus{Key: "k", EtcdRevision: 70, ClusterID: "0000000000000007", Continuous: &api.ContinuousStatus{ClusterID: "0000000000000007", NewestRevision: 82}}}
	for id, want := range map[string]int64{"7": 82, "8": 70} {
		r := Of(Facts{Record: &api.ClusterRecord{ClusterID: id, Revision: 83}, Backups: []api.EtcdBackup{b}})
		if got := r.Backups[0]; got.Revision != want || got.Log != (want == 82) || got.Behind != 83-want {
			t.Errorf("cluster %s: %+v", id, got)
		}
	}
}

// A member applies what a quorum has committed, and nothing else.
func TestWhatAnotherSurvivorHasAppliedIsKnown(t *testing.T) {
	member := func(name string, id, cluster uint64, revision int64) Member {
		return Member{Missing: Missing{Name: name}, Status: &etcd.Status{MemberID: id, ClusterID: cluster, Revision: revision}}
	}
	f := Facts{
		Record:  &api.ClusterRecord{ClusterID: "7", Revision: 70},
		Members: []Member{member("a", 1, 7, 80), member("b", 2, 7, 83), member("foreign", 3, 8, 9000), {Missing: Missing{Name: "c"}}, {Missing: Missing{Name: "d"}}},
		Backups: []api.EtcdBackup{{Status: api.BackupStatus{Key: "k", EtcdRevision: 60}}},
	}
	check := func(what string, want int64) {
		t.Helper()
		r := Of(f)
		if got := r.LastRevision(); got != want {
			t.Errorf("%s: the last known revision is %d, want %d", what, got, want)
		}
		if s := r.Survivor("a"); s.Behind != max(0, want-80) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	check("with a survivor that has more", 83)
	text := saidOf(f, "a")
	if want := "a has revision 80; its log may hold later ones; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes"; text != want {
		t.Errorf("it says %q, want %q", text, want)
	}
	f.LastRevision, f.Members = 83, f.Members[:1]
	check("once that survivor is gone", 83)
	f.Record, f.LastRevision = nil, 0
	if got := Of(f).LastRevision(); got != 0 {
		t.Errorf("without a record: %d", got)
	}
}

// saidOf is what a report says of a survivor.
func saidOf(f Facts, name string) string {
	for _, way := range Of(f).Ways() {
		if way.Member == name {
			return way.Message
		}
	}
	return ""
}

// An EtcdCluster was deleted and recreated under its name, and its EtcdBackup has made no backup since.
func TestABackupOfAnotherClusterIsNoWayOut(t *testing.T) {
	backup := func(name, key, id string, revision int64) api.EtcdBackup {
		b := api.EtcdBackup{Status: api.BackupStatus{Key: key, EtcdRevision: revision, ClusterID: id}}
		b.Name = name
		return b
	}
	f := Facts{
		Record: &api.ClusterRecord{ClusterID: "7", Revision: 83}, RestoredFrom: "bucket/origin",
		Backups: []api.EtcdBackup{
			backup("other", "bucket/other", "0000000000000008", 9000), backup("unknown", "bucket/unknown", "", 81),
			backup("own", "bucket/own", "0000000000000007", 82), backup("origin", "bucket/origin", "0000000000000009", 60),
		},
	}
	r := Of(f)
	var ways []string
	for _, w := range r.Ways() {
		if w.Way == api.RecoveryBackup {
			ways = append(ways, w.Backup)
		}
	}
	if !slices.Equal(ways, []string{"own", "unknown", "origin"}) {
		t.Errorf("the ways out are %q", ways)
	}
	if last := r.Backups[3]; last.Name != "other" || last.Unfit == "" || last.Loses() != "cannot be used: "+last.Unfit {
		t.Errorf("the last one is %+v", last)
	}
	f.Record = nil
	if got := Of(f).Backups[0]; got.Name != "other" || got.Unfit != "" {
		t.Errorf("without a record: %+v", got)
	}
}

// The end of a survivor's log is restored too, and before the choice nobody knows what it holds.
func TestALossIsStatedAsFarAsTheLogOfTheSurvivorIsKnown(t *testing.T) {
	f := Facts{
		Record:  &api.ClusterRecord{ClusterID: "7", Revision: 83},
		Members: []Member{{Missing: Missing{Name: "a"}, Status: &etcd.Status{MemberID: 1, ClusterID: 7, Revision: 80, RaftIndex: 500, RaftApplied: 500}}, {Missing: Missing{Name: "b"}}, {Missing: Missing{Name: "c"}}},
	}
	r := Of(f)
	if got, want := r.Ways()[0].Message, "a has revision 80; its log may hold later ones; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes"; got != want {
		t.Errorf("before the choice, it says %q, want %q", got, want)
	}
	if got, want := r.Loses(r.Survivors[0]), "at most 3 known revisions, and perhaps later writes"; got != want {
		t.Errorf("in a few words, it says %q, want %q", got, want)
	}
	for unapplied, want := range map[int64]string{
		Unknown: "revision 80 is restored, and perhaps later ones from the log of the survivor; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes",
		0:       "revision 80 is restored; the last revision known to be committed was 83: 3 known revisions are lost, and later writes",
		1:       "revision 80 is restored, and at most 1 later one from the log of the survivor; the last revision known to be committed was 83: 2 to 3 known revisions are lost, and later writes",
		3:       "revision 80 is restored, and at most 3 later ones from the log of the survivor; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes",
		9:       "revision 80 is restored, and at most 9 later ones from the log of the survivor; the last revision known to be committed was 83: at most 3 known revisions are lost, and perhaps later writes",
	} {
		if got := r.Restored(80, unapplied); got != want {
			t.Errorf("with %d entries, it says %q, want %q", unapplied, got, want)
		}
	}
	for unapplied, want := range map[int64]string{
		0: "revision 83 is restored; the last revision known to be committed was 83: no known revision is lost; perhaps the last writes are",
		2: "revision 83 is restored, and at most 2 later ones from the log of the survivor; the last revision known to be committed was 83: no known revision is lost; perhaps the last writes are",
	} {
		if got := r.Restored(83, unapplied); got != want {
			t.Errorf("with %d entries, it says %q, want %q", unapplied, got, want)
		}
	}
	if got, want := Of(Facts{}).Restored(83, 1), "revision 83 is restored, and at most 1 later one from the log of the survivor; no committed revision is recorded, so the loss is unknown"; got != want {
		t.Errorf("without a record, it says %q, want %q", got, want)
	}
}
