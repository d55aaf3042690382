// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestARevisionIsNotRaisedBeyondWhatEtcdKnows(t *testing.T) {
	for _, tc := range []struct {
		revision, bump int64
		fits           bool
	}{
		{0, api.MaxBumpRevision, true},
		{1 << 40, api.MaxBumpRevision, true},
		{1<<62 - 5, 5, true},
		{1<<62 - 5, 6, false},
		{1<<63 - 1, 1, false},
		{1<<63 - 1, 0, true}, // it is what it is
	} {
		if err := bumpFits(&api.RestoredBackup{EtcdRevision: 1<<63 - 1, Revision: tc.revision}, tc.bump); tc.revision > 0 && tc.fits != (err == nil) {
			t.Errorf("an earlier revision %d raised by %d: %v", tc.revision, tc.bump, err)
		}
		err := bumpFits(&api.RestoredBackup{EtcdRevision: tc.revision}, tc.bump)
		if tc.fits != (err == nil) || err != nil && !errors.Is(err, errUnfit) {
			t.Errorf("%d raised by %d: %v", tc.revision, tc.bump, err)
		}
	}
}

func TestAnEarlierRevisionInPlaceIsRaisedAboveTheBackup(t *testing.T) {
	template := &api.ClusterTemplate{}
	for name, tc := range map[string]struct {
		spec    api.RestoreSpec
		version string
		known   int64
		want    int64
	}{
		"in place":              {api.RestoreSpec{Revision: 40}, "3.6.16", 41, 1_000_000_002},
		"a second time":         {api.RestoreSpec{Revision: 40}, "3.6.16", 1_000_000_050, 2_000_000_010},
		"the last time":         {api.RestoreSpec{Revision: 40}, "3.6.16", 1 << 60, api.MaxBumpRevision},
		"by so much":            {api.RestoreSpec{Revision: 40, BumpRevision: 7}, "3.6.16", 50, 7},
		"elsewhere":             {api.RestoreSpec{Revision: 40, ClusterTemplate: template}, "3.6.16", 50, 0},
		"by so much, elsewhere": {api.RestoreSpec{Revision: 40, BumpRevision: 7, ClusterTemplate: template}, "3.6.16", 50, 7},
		"with an old etcd":      {api.RestoreSpec{Revision: 40}, "3.5.9", 50, 0},
		"the whole backup":      {api.RestoreSpec{}, "3.6.16", 50, 0},
	} {
		b := &api.RestoredBackup{EtcdRevision: 42, Revision: tc.spec.Revision}
		if got := bumpFor(&tc.spec, b, manifest(`{"kind":"EtcdCluster","spec":{"size":3,"version":"`+tc.version+`"}}`), tc.known); got != tc.want {
			t.Errorf("%s: raised by %d, want %d", name, got, tc.want)
		}
	}
}

// A second restore in place goes to an earlier revision of the same backup. Clients of the first one
// have seen revisions above it.
func TestASecondRestoreOfARevisionIsRaisedAboveTheFirst(t *testing.T) {
	for name, status := range map[string]func(*api.ClusterStatus){
		"by its record": func(st *api.ClusterStatus) {
			st.RestoredFrom = &api.RestoredFrom{RestoreUID: "first", EtcdRevision: 41, Revision: 41, BumpRevision: aboveBackup}
			st.Record = &api.ClusterRecord{Revision: 41 + aboveBackup + 9}
		},
		"without one": func(st *api.ClusterStatus) {
			st.RestoredFrom = &api.RestoredFrom{RestoreUID: "first", EtcdRevision: 41, Revision: 41, BumpRevision: aboveBackup + 9}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(1)
				c := w.cluster()
				status(&c.Status)
				w.setStatus(c)
				r := testRestore()
				r.Spec.Revision = 40
				w.add("etcdrestores", r)
				stop := w.run()
				defer stop()
				begins := func() int64 {
					seed, err := api.SeedBackupOf(w.cluster())
					if err != nil {
						t.Fatal(err)
					}
					return seed.Revision + seed.BumpRevision
				}
				w.await("the new cluster", 2*time.Minute, in(api.RestorePhaseStarting, w))
				if got, want := begins(), int64(41+aboveBackup+9+aboveBackup); got != want {
					t.Errorf("it begins at %d, want %d", got, want)
				}
				w.edit(func(r *api.EtcdRestore) { r.Spec.Revision = 39 })
				w.await("success", 5*time.Minute, in(api.RestorePhaseSucceeded, w))
				if b := w.restore().Status.Backup; b.Revision != 39 || b.Revision+b.BumpRevision < 41+aboveBackup+9+aboveBackup {
					t.Errorf("after an edit, the status has %+v", b)
				}
				if w.Told("Revisions May Repeat") {
					t.Error("clients do not notice")
				}
			})
		})
	}
}

// The seed goes back to the revision, and an edit of it is followed like any other.
func TestTheSeedIsToldTheRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.running(1)
		r := testRestore()
		r.Spec.Revision = 40
		w.add("etcdrestores", r)
		stop := w.run()
		defer stop()
		w.await("the new cluster", 2*time.Minute, in(api.RestorePhaseStarting, w))
		seed, err := api.SeedBackupOf(w.cluster())
		if err != nil || seed.Revision != 40 || seed.BumpRevision != aboveBackup {
			t.Errorf("the annotation is %+v, %v", seed, err)
		}
		w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
		if b := w.restore().Status.Backup; b.Revision != 40 || b.BumpRevision != seed.BumpRevision {
			t.Errorf("the status has %+v", b)
		}
	})
}

func TestASecondRestoreBelowRevisionsThatClientsKnowIsToldOf(t *testing.T) {
	for name, tc := range map[string]struct {
		from     *api.RestoredFrom
		bump     int64
		reported bool
	}{
		"the first restore":                {nil, 1000, false},
		"after one that raised nothing":    {&api.RestoredFrom{EtcdRevision: 5}, 0, false},
		"the same backup and as much":      {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 1000, true},
		"an older backup and as much":      {&api.RestoredFrom{EtcdRevision: 7, BumpRevision: 1000}, 1000, true},
		"not raised, after one that was":   {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 0, true},
		"an earlier revision, taken above": {&api.RestoredFrom{EtcdRevision: 5_000, Revision: 1, BumpRevision: 1000}, 2000, false},
		"raised by more":                   {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 2000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.running(1)
				c := w.cluster()
				c.Status.RestoredFrom = tc.from
				w.setStatus(c)
				r := testRestore()
				r.Spec.BumpRevision = tc.bump
				w.add("etcdrestores", r)
				stop := w.run()
				defer stop()
				w.await("success", 2*time.Minute, in(api.RestorePhaseSucceeded, w))
				if got := w.Told("Revisions May Repeat"); got != tc.reported {
					t.Errorf("reported: %v", got)
				}
			})
		})
	}
}
