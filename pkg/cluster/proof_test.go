// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// compared is a member of an import.
type compared struct {
	Member
	digest    etcd.Digest
	connected bool
	err       error // of all answers
	compacted int64
	reads     *[]int64 // revisions
}

func (c compared) Digest(_ context.Context, revision int64) (etcd.Digest, error) {
	if c.reads != nil {
		*c.reads = append(*c.reads, revision)
	}
	if revision <= c.compacted {
		return etcd.Digest{}, rpctypes.ErrCompacted
	}
	return c.digest, c.err
}

func (c compared) ConnectedTo(context.Context, uint64) (bool, error) { return c.connected, c.err }

func TestAMemberOfAnImportIsProvenByItsData(t *testing.T) {
	same := compared{digest: etcd.Digest{Keys: 5}, connected: true}
	with := func(edit func(*compared)) compared {
		c := same
		edit(&c)
		return c
	}
	for name, test := range map[string]struct {
		former []Member
		own    Member
		want   string // of the doubt
	}{
		"the same data":               {[]Member{same, same}, same, ""},
		"other data":                  {[]Member{same}, with(func(c *compared) { c.digest.Sum[0]++ }), "holds other data"},
		"after a compaction":          {[]Member{same}, with(func(c *compared) { c.compacted = 7 }), "to compare the data of new: etcdserver: mvcc: required revision has been compacted"},
		"one is not connected":        {[]Member{same, with(func(c *compared) { c.connected = false })}, same, "for the former member old-1 to connect to new at http://new:2380; if the network allows that, delete the pod of new"},
		"one has not answered":        {[]Member{nil, same}, same, "for an answer of the former member old-0"},
		"one hides its metrics":       {[]Member{compared{err: errors.New("404")}}, same, "metrics of the former member old-0"},
		"the member has not answered": {[]Member{same}, nil, "for answers"},
		"the member refuses to read":  {[]Member{same}, compared{err: errors.New("refused")}, "refused"},
		"no former member":            {nil, same, "for answers"},
	} {
		p := &proof{
			member: plan.MemberState{PodName: "new", Member: etcd.Member{ID: 9}, Status: &etcd.Status{Revision: 7}},
			own:    test.own, former: map[string]Member{}, peer: "http://new:2380",
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

// Each read of a former member costs its clients time.
func TestAFormerMemberIsReadOnceForSeveralProofs(t *testing.T) {
	data := etcd.Digest{Keys: 5}
	known := digestAt{revision: 6, digest: data}
	for name, test := range map[string]struct {
		known     digestAt
		revision  int64 // of the member
		compacted int64 // by it
		digest    etcd.Digest
		err       error   // of the member
		want      []int64 // reads of the former member
		doubt     bool
	}{
		"the first":           {digestAt{}, 7, 0, data, nil, []int64{7}, false},
		"another":             {known, 7, 0, data, nil, nil, false},
		"of the same moment":  {known, 6, 0, data, nil, nil, false},
		"ahead of the member": {known, 5, 0, data, nil, []int64{5}, false},
		"compacted":           {known, 7, 6, data, nil, []int64{7}, false},
		"other data":          {known, 7, 0, etcd.Digest{Keys: 6}, nil, []int64{7}, true},
		"no answer":           {known, 7, 0, data, errors.New("refused"), nil, true},
	} {
		var reads []int64
		p := &proof{
			member: plan.MemberState{PodName: "new", Status: &etcd.Status{Revision: test.revision}}, known: test.known,
			own:    compared{digest: test.digest, compacted: test.compacted, err: test.err},
			former: map[string]Member{"old-0": compared{digest: data, connected: true, reads: &reads}},
		}
		if doubt, _ := p.run(t.Context()); (doubt != "") != test.doubt || !slices.Equal(reads, test.want) {
			t.Errorf("%s: %q after reads of %d, want %d", name, doubt, reads, test.want)
		}
		if want := (digestAt{revision: test.revision, digest: data}); len(test.want) > 0 && p.known != want {
			t.Errorf("%s: %+v is known, want %+v", name, p.known, want)
		}
	}
}

// The leader has the most to do.
func TestTheLeaderOfAnImportedEtcdIsNotAskedForItsData(t *testing.T) {
	same := compared{digest: etcd.Digest{Keys: 5}, connected: true}
	leader := same
	leader.digest.Keys = 6 // shows who was asked
	for name, former := range map[string]map[string]Member{
		"the first": {"old-0": leader, "old-1": same, "old-2": same},
		"the last":  {"old-0": same, "old-1": same, "old-2": leader},
		"the only":  {"old-0": leader},
	} {
		p := &proof{member: plan.MemberState{PodName: "new", Status: &etcd.Status{Revision: 7}}, own: same, former: former, leader: "old-0"}
		if former["old-2"] == Member(leader) {
			p.leader = "old-2"
		}
		doubt, _ := p.run(t.Context())
		if asked := doubt != ""; asked != (len(former) == 1) {
			t.Errorf("%s: %q", name, doubt)
		}
	}
}
