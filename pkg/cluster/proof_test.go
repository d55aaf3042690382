// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// compared is a member of an import.
type compared struct {
	Member
	hash      etcd.Hash
	keys      etcd.Keys
	connected bool
	err       error // of all answers
}

func (c compared) HashKV(context.Context, int64) (etcd.Hash, error) { return c.hash, c.err }

func (c compared) Keys(context.Context, int64) (etcd.Keys, error) { return c.keys, c.err }

func (c compared) ConnectedTo(context.Context, uint64) (bool, error) { return c.connected, c.err }

func TestAMemberOfAnImportIsProvenByItsData(t *testing.T) {
	same := compared{hash: etcd.Hash{Sum: 5, Compacted: 3}, keys: etcd.Keys{Count: 2}, connected: true}
	with := func(edit func(*compared)) compared {
		c := same
		edit(&c)
		return c
	}
	for name, test := range map[string]struct {
		former        []Member
		own           Member
		peer          compared
		voter, secure bool
		want          string // of the doubt
	}{
		"a learner":                     {[]Member{same, same}, same, same, false, false, ""},
		"a learner with other data":     {[]Member{same}, same, with(func(c *compared) { c.hash.Sum++ }), false, false, "holds other data"},
		"after a compaction":            {[]Member{same}, same, with(func(c *compared) { c.hash.Compacted++ }), false, false, "a compaction ran"},
		"a learner with TLS":            {[]Member{same}, same, compared{err: errors.New("EOF")}, false, true, ""},
		"other keys with TLS":           {[]Member{same}, with(func(c *compared) { c.keys.Sum[0]++ }), same, false, true, "holds other data"},
		"a voter":                       {[]Member{same}, same, compared{err: errors.New("EOF")}, true, true, ""},
		"a voter with other data":       {[]Member{same}, with(func(c *compared) { c.hash.Sum++ }), same, true, false, "holds other data"},
		"one is not connected":          {[]Member{same, with(func(c *compared) { c.connected = false })}, same, same, false, false, "for the former member old-1 to connect to new at ; if the network allows that, delete the pod of new"},
		"one has not answered":          {[]Member{nil, same}, same, same, false, false, "for an answer of the former member old-0"},
		"one hides its metrics":         {[]Member{compared{err: errors.New("404")}}, same, same, false, false, "metrics of the former member old-0"},
		"the learner has not answered":  {[]Member{same}, nil, same, false, false, "for answers"},
		"the learner serves no hash":    {[]Member{same}, same, compared{err: errors.New("refused")}, false, false, "compare the data of new: refused"},
		"the voter answers no question": {[]Member{same}, compared{err: errors.New("refused")}, same, true, false, "refused"},
		"no former member":              {nil, same, same, false, false, "for answers"},
	} {
		p := proof{
			member: plan.MemberState{PodName: "new", Member: etcd.Member{ID: 9}, Status: &etcd.Status{Revision: 7}},
			own:    test.own, voter: test.voter, secure: test.secure, former: map[string]Member{},
			peerHash: func(context.Context, etcd.Endpoint, int64) (etcd.Hash, error) { return test.peer.hash, test.peer.err },
		}
		for i, m := range test.former {
			p.former["old-"+string(rune('0'+i))] = m
		}
		doubt, pause := p.run(t.Context())
		if (doubt == "") != (test.want == "") || !strings.Contains(doubt, test.want) || (pause == 0) != (doubt == "") {
			t.Errorf("%s: %q and a pause of %s, want %q", name, doubt, pause, test.want)
		}
	}
}

// A member applies no writes while it reads its database for HashKV. All clients wait for a leader.
func TestTheLeaderOfAnImportedEtcdIsNotAskedForItsData(t *testing.T) {
	same := compared{hash: etcd.Hash{Sum: 5}, connected: true}
	leader := same
	leader.hash.Sum = 6 // shows who was asked
	for name, former := range map[string]map[string]Member{
		"the first": {"old-0": leader, "old-1": same, "old-2": same},
		"the last":  {"old-0": same, "old-1": same, "old-2": leader},
		"the only":  {"old-0": leader},
	} {
		p := proof{member: plan.MemberState{PodName: "new", Status: &etcd.Status{Revision: 7}}, own: same, voter: true, former: former, leader: "old-0"}
		if former["old-2"] == Member(leader) {
			p.leader = "old-2"
		}
		doubt, _ := p.run(t.Context())
		if asked := doubt != ""; asked != (len(former) == 1) {
			t.Errorf("%s: %q", name, doubt)
		}
	}
}
