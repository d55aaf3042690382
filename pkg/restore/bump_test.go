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
		err := bumpFits(&api.RestoredBackup{EtcdRevision: tc.revision}, tc.bump)
		if tc.fits != (err == nil) || err != nil && !errors.Is(err, errUnfit) {
			t.Errorf("%d raised by %d: %v", tc.revision, tc.bump, err)
		}
	}
}

func TestASecondRestoreBelowRevisionsThatClientsKnowIsToldOf(t *testing.T) {
	for name, tc := range map[string]struct {
		from     *api.RestoredFrom
		bump     int64
		reported bool
	}{
		"the first restore":              {nil, 1000, false},
		"after one that raised nothing":  {&api.RestoredFrom{EtcdRevision: 5}, 0, false},
		"the same backup and as much":    {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 1000, true},
		"an older backup and as much":    {&api.RestoredFrom{EtcdRevision: 7, BumpRevision: 1000}, 1000, true},
		"not raised, after one that was": {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 0, true},
		"raised by more":                 {&api.RestoredFrom{EtcdRevision: 1, BumpRevision: 1000}, 2000, false},
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
