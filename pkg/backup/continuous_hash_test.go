// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestTheMembersThatDelayLeastAreAskedFirst(t *testing.T) {
	of := func(id, leader uint64, revision int64, change func(*etcd.Status)) answering {
		st := etcd.Status{ClusterID: testCluster, MemberID: id, LeaderID: leader, Revision: revision, Version: "3.6.16"}
		if change != nil {
			change(&st)
		}
		return answering{status: st}
	}
	for name, tc := range map[string]struct {
		members []answering
		want    []uint64
	}{
		"a follower":           {[]answering{of(1, 1, 9, nil), of(2, 1, 9, nil), of(3, 1, 9, nil)}, []uint64{3, 2, 1}},
		"the watched follower": {[]answering{of(1, 1, 9, nil), of(2, 1, 9, nil)}, []uint64{2, 1}},
		"one alone":            {[]answering{of(1, 1, 9, nil)}, []uint64{1}},
		"large and alone":      {[]answering{of(1, 1, 9, func(s *etcd.Status) { s.DBSize, s.DBInUse = 8<<30, largestPause+1 })}, nil},
		"small by now":         {[]answering{of(1, 1, 9, func(s *etcd.Status) { s.DBSize, s.DBInUse = 8<<30, largestPause })}, []uint64{1}},
		"a large follower":     {[]answering{of(1, 1, 9, nil), of(3, 1, 9, func(s *etcd.Status) { s.DBSize, s.DBInUse = 8<<30, 8<<30 })}, []uint64{3, 1}},
		"one that is behind":   {[]answering{of(1, 1, 9, nil), of(3, 1, 8, nil)}, []uint64{1}},
		"a learner":            {[]answering{of(1, 1, 9, nil), of(3, 1, 9, func(s *etcd.Status) { s.Learner = true })}, []uint64{1}},
		"another version":      {[]answering{of(1, 1, 9, nil), of(2, 1, 9, nil), of(3, 1, 9, func(s *etcd.Status) { s.Version = "3.7.3" })}, []uint64{3}},
		"another cluster":      {[]answering{of(3, 1, 9, func(s *etcd.Status) { s.ClusterID++ })}, nil},
		"no answer":            {[]answering{{}}, nil},
	} {
		var got []uint64
		for _, m := range byDelay(tc.members, testCluster, 2, 9) {
			got = append(got, m.status.MemberID)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// A member whose data is corrupt gave a hash by which later restores were refused.
func TestOnlyAHashOnWhichMembersAgreeIsTaken(t *testing.T) {
	at := func(compacted int64, hash uint32) changelog.Checkpoint {
		return changelog.Checkpoint{Revision: 9, Compacted: compacted, Hash: hash}
	}
	none := changelog.Checkpoint{}
	for name, tc := range map[string]struct {
		// answers of the members; a zero one is an error. Each list is for one look.
		looks     [][]changelog.Checkpoint
		enough    int
		agreed    changelog.Checkpoint
		differ    string
		err       string
		questions int
	}{
		"two agree":                     {[][]changelog.Checkpoint{{at(3, 7), at(3, 7), at(3, 8)}}, 2, at(3, 7), "", "", 2},
		"one alone":                     {[][]changelog.Checkpoint{{at(3, 7)}}, 1, at(3, 7), "", "", 1},
		"the first differs":             {[][]changelog.Checkpoint{{at(3, 8), at(3, 7), at(3, 7)}, {at(3, 8), at(3, 7), at(3, 7)}}, 2, at(3, 7), "revision 9, as their hashes show (m0: 00000008; m1 and m2: 00000007)", "", 6},
		"one has not deleted all yet":   {[][]changelog.Checkpoint{{at(3, 8), at(3, 7), at(3, 7)}, {at(3, 7), at(3, 7), at(3, 7)}}, 2, at(3, 7), "", "", 5},
		"two that differ":               {[][]changelog.Checkpoint{{at(3, 8), at(3, 7)}, {at(3, 8), at(3, 7)}}, 2, none, "m0: 00000008; m1: 00000007", "different keys at revision 9", 4},
		"a compaction between":          {[][]changelog.Checkpoint{{at(3, 8), at(4, 7)}}, 2, none, "", "no 2 members", 2},
		"one that compacts is no enemy": {[][]changelog.Checkpoint{{at(3, 8), at(4, 7), at(4, 7)}}, 2, at(4, 7), "", "", 3},
		"one that does not answer":      {[][]changelog.Checkpoint{{none, at(3, 7), at(3, 7)}}, 2, at(3, 7), "", "", 3},
		"one answers":                   {[][]changelog.Checkpoint{{none, at(3, 7), none}}, 2, none, "", "it is busy", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var members []answering
				for i := range tc.looks[0] {
					members = append(members, answering{name: "m" + string(rune('0'+i)), status: etcd.Status{MemberID: uint64(i)}}) //nolint:gosec // small
				}
				asked := 0
				begun := time.Now()
				got, err := compareTwice(t.Context(), secondLook, members, tc.enough, func(m answering) (changelog.Checkpoint, error) {
					asked++
					look := 0
					if time.Since(begun) >= secondLook {
						look = 1
					}
					if answer := tc.looks[look][m.status.MemberID]; answer != none {
						return answer, nil
					}
					return none, errors.New("it is busy")
				})
				if got.agreed != tc.agreed || !strings.Contains(got.differing, tc.differ) || (got.differing == "") != (tc.differ == "") {
					t.Errorf("%+v", got)
				}
				if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
					t.Errorf("the error is %v", err)
				}
				if asked != tc.questions {
					t.Errorf("%d questions, want %d", asked, tc.questions)
				}
			})
		})
	}
}

func TestMembersThatDifferAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLogWorld(t, nil)
		w.differing = "members have different keys"
		stop := w.run()
		defer stop()
		w.write(10 * time.Minute)
		if st := w.continuous(); st.Inconsistency != w.differing || !st.Recording {
			t.Errorf("the status is %+v", st)
		}
		if got := w.Events(); !slices.ContainsFunc(got, func(e string) bool { return strings.Contains(e, "Members Differ") }) {
			t.Errorf("the events are %q", got)
		}
		w.mu.Lock()
		w.differing = ""
		w.mu.Unlock()
		w.writeEvery(10*time.Second, time.Hour)
		if st := w.continuous(); st.Inconsistency != "" {
			t.Errorf("with equal hashes again, the status is %+v", st)
		}
	})
}
