// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// well is what a member answers that follows member 1, after an edit.
func well(id uint64, revision int64, edits ...func(*answer)) answer {
	a := answer{
		url:    fmt.Sprintf("http://m%d:2379", id),
		status: etcd.Status{MemberID: id, ClusterID: 9, LeaderID: 1, Version: "3.6.16", Revision: revision},
		agreed: revision,
	}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

func dead(a *answer) {
	*a = answer{url: a.url, statusErr: errors.New("connection refused"), agreedErr: errors.New("connection refused")}
}

// silent is a member through which no linearizable read comes to an end.
func silent(a *answer) { a.agreed, a.agreedErr = 0, errNoAnswer }

func leaderless(a *answer) {
	silent(a)
	a.status.LeaderID = 0
}
func learner(a *answer) {
	a.status.Learner, a.agreed, a.agreedErr = true, 0, rpctypes.ErrNotCapable
}
func applied(index uint64) func(*answer) {
	return func(a *answer) { a.status.RaftApplied = index }
}
func known(index uint64) func(*answer) {
	return func(a *answer) { silent(a); a.status.RaftIndex = index }
}
func stranger(a *answer) { a.status.ClusterID = 10 }

func alarm(kind string, id uint64) func(*answer) {
	return func(a *answer) { a.status.Alarms = append(a.status.Alarms, etcd.Alarm{MemberID: id, Type: kind}) }
}

func TestTheMemberIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		want    string // URLs of those that will do, the best first
		unsure  bool   // whether it is not linearizable
	}{
		"a follower before the leader":                 {[]answer{well(1, 100), well(2, 100)}, "m2 m1", false},
		"the follower with the highest revision":       {[]answer{well(1, 120), well(2, 100), well(3, 110)}, "m3 m2 m1", false},
		"the first of equals":                          {[]answer{well(3, 100), well(2, 100), well(1, 100)}, "m3 m2 m1", false},
		"the leader where it is alone":                 {[]answer{well(1, 100)}, "m1", false},
		"not the one that is dead":                     {[]answer{well(2, 100, dead), well(1, 100)}, "m1", false},
		"not the one that lags":                        {[]answer{well(1, 100), well(2, 99, silent), well(3, 100)}, "m3 m1", false},
		"one that has caught up though its read hangs": {[]answer{well(1, 100), well(2, 100, silent)}, "m2 m1", false},
		"a follower though writes followed its read":   {[]answer{well(1, 150), well(2, 100)}, "m2 m1", false},
		"not the one that was parted from the rest":    {[]answer{well(1, 100), well(2, 100, leaderless)}, "m1", false},
		"no learner":                 {[]answer{well(1, 100), well(2, 100, learner)}, "m1", false},
		"one with the alarm NOSPACE": {[]answer{well(1, 100, alarm(etcd.AlarmNoSpace, 2)), well(2, 100, alarm(etcd.AlarmNoSpace, 2))}, "m2 m1", false},
		"not the one of which another says that it is corrupt": {
			[]answer{well(1, 100, alarm(etcd.AlarmCorrupt, 2)), well(2, 200)}, "m1", false,
		},
		"without a quorum, the highest revision": {
			[]answer{well(1, 120, dead), well(2, 100, leaderless), well(3, 110, leaderless)}, "m3 m2", true,
		},
		"without a quorum, the highest revision though it leads": {
			[]answer{well(1, 120, silent), well(2, 100, silent)}, "m1 m2", true,
		},
		"without a quorum, of one revision, whoever has applied most": {
			[]answer{well(2, 100, leaderless, applied(50)), well(3, 100, leaderless, applied(60)), well(1, 99, leaderless, applied(70))}, "m3 m2 m1", true,
		},
		"without a quorum, of one entry, whoever knows the later ones": {
			[]answer{well(2, 100, leaderless, known(60)), well(3, 100, leaderless, known(61)), well(1, 100, known(59))}, "m3 m2 m1", true,
		},
		"without a quorum, no learner": {[]answer{well(2, 100, leaderless), well(3, 110, leaderless, learner)}, "m2", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := choose(c.answers)
			if err != nil {
				t.Fatal(err)
			}
			var ranked []string
			for _, i := range got.ranked {
				ranked = append(ranked, strings.TrimSuffix(strings.TrimPrefix(c.answers[i].url, "http://"), ":2379"))
			}
			if strings.Join(ranked, " ") != c.want || got.linearizable == c.unsure {
				t.Errorf("chosen are %v, linearizable %t, want %s and %t", ranked, got.linearizable, c.want, !c.unsure)
			}
		})
	}
}

func TestWhyNoMemberWillDoIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		want    []string
	}{
		"none answers": {[]answer{well(1, 0, dead), well(2, 0, dead)}, []string{"http://m1:2379: connection refused; http://m2:2379: connection refused"}},
		"a learner":    {[]answer{well(2, 100, learner)}, []string{"http://m2:2379", "learner"}},
		"a member that lags behind one that is corrupt": {
			[]answer{well(1, 100, alarm(etcd.AlarmCorrupt, 1)), well(2, 99, silent)},
			[]string{"http://m1:2379: the alarm CORRUPT", "http://m2:2379: the member is behind: it holds revision 99, the cluster has reached 100"},
		},
		"nobody knows who is corrupt": {[]answer{well(1, 100, alarm(etcd.AlarmCorrupt, 0)), well(2, 100)}, []string{"m1:2379: the alarm CORRUPT", "m2:2379: the alarm CORRUPT"}},
		"two clusters":                {[]answer{well(1, 100), well(2, 100, dead), well(3, 100, stranger)}, []string{"http://m1:2379 and http://m3:2379 are endpoints of different clusters"}},
		"a client that is unknown": {
			[]answer{well(1, 0, func(a *answer) { a.statusErr = fmt.Errorf("status of x: %w", rpctypes.ErrUserEmpty) })},
			[]string{"http://m1:2379: etcdserver: user name is empty: authentication is enabled", "a snapshot needs a user with the role root"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := choose(c.answers)
			if !errors.Is(err, ErrNoMember) {
				t.Fatalf("error %v is not ErrNoMember", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
		})
	}
}
