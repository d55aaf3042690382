// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// imports is the import of a running etcd in a life: nil in all others.
type imports struct {
	w       *world
	formers []*formerMember
	ids     map[uint64]bool // of the former members
	// deleted is true once somebody has deleted the EtcdCluster, and committed once its status
	// has held the commit.
	deleted, committed bool
	// meddled is when somebody else last changed the membership.
	meddled time.Time
	// short is for how many seconds the former members alone were no quorum before the commit.
	short int
}

const (
	// mostShort is for how many seconds the former members alone may be no quorum, after somebody
	// has removed one of them.
	mostShort = 180
	// meddledFor is how old an operator's view of the membership may be.
	meddledFor = 20 * time.Second
)

// importSpec makes the EtcdCluster of a life one that imports an etcd.
func (w *world) importSpec(obj *api.EtcdCluster) {
	if !w.life.imports {
		return
	}
	w.lies, w.api.noWatchLists = false, true
	obj.Spec.Pod.BusyboxImage = ""
	i := &imports{w: w, ids: map[uint64]bool{}}
	i.formers = w.startFormers([]int{1, 3, 3, 3, 5}[w.life.number("formers")%5])
	w.imports = i
	obj.Spec.ImportFrom = &api.ImportSource{}
	for url := range i.formers[0].flags.initialCluster {
		i.ids[memberID(url, "old", nil)] = true
	}
	for _, f := range i.formers {
		obj.Spec.ImportFrom.Endpoints = append(obj.Spec.ImportFrom.Endpoints, clientURL(f.run.name))
	}
}

// plan chooses the faults of an import. They are drawn apart from the others.
func (i *imports) plan() {
	w, l := i.w, i.w.life
	at := func(what string, least, most time.Duration) *fault {
		return &fault{id: "import: " + what, at: l.between(least, most, "import", what), lasts: l.between(5*time.Second, 3*time.Minute, "import lasts", what)}
	}
	pick := func(what string, n int) int { return int(l.number("import", what) % uint64(n)) }
	someone := i.formers[pick("former", len(i.formers))]
	other := i.formers[pick("other former", len(i.formers))]
	n := w.nodes[pick("node", len(w.nodes))]
	if l.chance(0.8, "import", "commit") {
		f := at("somebody commits", 20*time.Second, 5*time.Minute)
		f.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) {
				if from := o.(*api.EtcdCluster).Spec.ImportFrom; from != nil {
					from.Commit = true
				}
			})
		}
		w.expect(f)
	}
	if l.chance(0.25, "import", "delete") {
		f := at("somebody deletes the EtcdCluster", 20*time.Second, 6*time.Minute)
		f.begin = i.deleteCluster
		w.expect(f)
	}
	if l.chance(0.4, "import", "power") {
		f := at("a former member loses power", 0, stormLasts)
		f.begin, f.end = someone.powerOff, someone.powerOn
		w.expect(f)
	}
	for k := range pick("kills", 4) {
		f := at(fmt.Sprintf("a former member is killed (%d)", k), 0, stormLasts)
		f.begin = i.formers[pick(fmt.Sprint("killed ", k), len(i.formers))].kill
		w.expect(f)
	}
	if l.chance(0.25, "import", "cut") {
		f := at("a node is cut off from a former member", 0, stormLasts)
		f.begin = func() { w.cut(n.name, other.run.node.name); w.cut(other.run.node.name, n.name) }
		f.end = func() { w.heal(n.name, other.run.node.name); w.heal(other.run.node.name, n.name) }
		w.expect(f)
	}
	if l.chance(0.25, "import", "unseen") {
		f := at("the operator is cut off from a former member", 0, stormLasts)
		f.begin = func() { w.impaired(); w.cut("operator", other.run.node.name) }
		f.end = func() { w.impaired(); w.heal("operator", other.run.node.name) }
		w.expect(f)
	}
	for k := range pick("crashes", 3) {
		f := at(fmt.Sprintf("the operator crashes (%d)", k), 10*time.Second, stormLasts)
		f.begin = func() {
			if o := w.operator(); o != nil {
				o.crash()
			}
		}
		w.expect(f)
	}
	if l.chance(0.2, "import", "stranger") {
		f := at("somebody adds a member", 10*time.Second, stormLasts)
		f.begin, f.end = func() { i.addStranger(l.chance(0.5, "import", "stranger learns")) }, i.removeStrangers
		w.expect(f)
	}
	if len(i.formers) > 1 && l.chance(0.15, "import", "remove") {
		f := at("somebody removes a former member", 10*time.Second, stormLasts)
		f.begin = func() { i.removeFormer(someone) }
		w.expect(f)
	}
}

func (i *imports) deleteCluster() {
	if s := i.w.api.shelves["etcdclusters"]; s.objects[storedKey(namespace, clusterName)] != nil {
		i.deleted = true
		i.w.edited = time.Now()
		i.w.api.remove(s, storedKey(namespace, clusterName), nil)
	}
}

// leader returns the leader of the imported etcd, if it commits.
func (i *imports) leader() *member {
	h := i.w.current()
	if h == nil {
		return nil
	}
	for _, id := range h.machine.voters() {
		if m := i.w.memberAt(h.machine.members[id].url); m != nil && m.id == id && m.leads() && m.commits() {
			return m
		}
	}
	return nil
}

const stranger = "stranger"

func (i *imports) addStranger(learner bool) {
	if m := i.leader(); m != nil {
		m.add("http://"+stranger+".old.ns.svc:2380", learner, func(id uint64, err error) {
			i.w.narrate("somebody", "has added member %x (learner: %t): %v", id, learner, err)
			i.meddled = time.Now()
		})
	}
}

// strangers are the members that nobody of ours has added, and that were not there before.
func (i *imports) strangers(members map[uint64]memberInfo) []uint64 {
	var ids []uint64
	for id, info := range members {
		if !i.own(info) && !i.ids[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (i *imports) own(info memberInfo) bool {
	return strings.HasPrefix(i.w.hostOf(info.url), clusterName+"-")
}

// removeStrangers removes them, and tries again until it succeeds.
func (i *imports) removeStrangers() {
	h := i.w.current()
	if h == nil || len(i.strangers(h.machine.members)) == 0 {
		return
	}
	if m := i.leader(); m != nil {
		id := i.strangers(h.machine.members)[0]
		m.remove(id, func(err error) {
			i.w.narrate("somebody", "removes member %x: %v", id, err)
			i.meddled = time.Now()
		})
	}
	i.w.after(10*time.Second, i.removeStrangers)
}

// removeFormer removes a former member, as its tool may do.
func (i *imports) removeFormer(f *formerMember) {
	if m := i.leader(); m != nil && f.disk.hasData() && len(m.machine.voters()) > 1 {
		m.remove(f.disk.member, func(err error) {
			i.w.narrate("somebody", "removes %s: %v", f.run.name, err)
			i.meddled = time.Now()
		})
	}
}

// takesBack reports whether own members have to leave, whether they are well or not: somebody has removed a
// former one before the commit, and those that are left are no quorum.
func (i *imports) takesBack(h *history) bool {
	if i == nil || i.committed {
		return false
	}
	former, _, all := i.votes(h.machine.members)
	return former < etcd.Quorum(all)
}

// votes counts the voters of the former side and of the own one.
func (i *imports) votes(members map[uint64]memberInfo) (former, own, all int) {
	for id, info := range members {
		switch {
		case info.learner:
			continue
		case i.ids[id]:
			former++
		case i.own(info):
			own++
		}
		all++
	}
	return former, own, all
}

// commits notes the status that an operator writes.
func (i *imports) commits(st *api.ImportStatus) {
	if i != nil && st != nil && st.CommitDate != "" {
		i.committed = true
	}
}

// removes checks that the operator removes only its own members before the commit, and only members
// that were there at the beginning besides.
func (i *imports) removes(m *member, id uint64) {
	info, is := m.machine.members[id]
	if i == nil || !is || i.own(info) {
		return
	}
	switch name := i.w.nameOf(m, id); {
	case !i.ids[id]:
		i.w.fail("the operator removes %s, which somebody else has added", name)
	case !i.committed:
		i.w.fail("the operator removes the former member %s before the commit of the import", name)
	}
}

// promotes checks that the former members remain a quorum without the own ones before the commit.
func (i *imports) promotes(m *member, id uint64) {
	if i == nil || i.committed {
		return
	}
	if info, is := m.machine.members[id]; !is || !info.learner {
		return
	}
	former, _, all := i.votes(m.machine.members)
	if former < etcd.Quorum(all+1) && time.Since(i.meddled) > meddledFor {
		i.w.fail("%s gets a vote: of %d votes then, %d belong to former members, and the import is not committed", i.w.nameOf(m, id), all+1, former)
	}
}

// look checks that one side alone has a quorum at any time, and that a deletion leaves the former
// membership.
func (i *imports) look(h *history) {
	if i == nil {
		return
	}
	w := i.w
	former, own, all := i.votes(h.machine.members)
	before := i.short
	i.short = 0
	if !i.committed && own > 0 && former < etcd.Quorum(all) && time.Since(w.checks.hampered) > disagree && i.leader() != nil && w.api.refusal == "" {
		if i.short = before + 1; i.short > mostShort {
			w.fail("for %d seconds before the commit, the former members are %d of %d votes", mostShort, former, all)
		}
	}
	if w.api.cluster() != nil || !i.deleted {
		return
	}
	switch {
	case !i.committed && own > 0:
		w.fail("the EtcdCluster is gone, the import was not committed, and %d own members have votes", own)
	case !i.committed && slices.ContainsFunc(h.machine.ids(), func(id uint64) bool { return i.own(h.machine.members[id]) }):
		w.fail("the EtcdCluster is gone, the import was not committed, and own members are left")
	case i.committed && former > 0:
		w.fail("the EtcdCluster is gone, the import was committed, and %d former members have votes", former)
	}
}

// settled returns the outcome of an import; "": there is none yet.
func (i *imports) settled(obj *api.EtcdCluster) string {
	w := i.w
	served := !slices.ContainsFunc(w.clients, func(c *client) bool { return !c.since.IsZero() || time.Since(c.last) >= 3*time.Second })
	if obj == nil {
		switch {
		case !i.deleted || len(w.api.pods()) > 0:
			return ""
		case i.committed:
			return "imported and deleted"
		case served:
			return "taken back"
		}
		return ""
	}
	st := obj.Status.Import
	switch {
	case !served || st == nil:
		return ""
	case st.CompletionDate != "" && w.asSpecified(obj):
		return "imported"
	case !obj.Spec.ImportFrom.Commit && st.Phase == api.ImportJoined:
		return "joined"
	}
	return ""
}

// obstacle returns what keeps an import from its end, as the model knows it.
func (i *imports) obstacle(h *history, obj *api.EtcdCluster) (what, word string, within time.Duration) {
	switch {
	case i == nil || h == nil:
		return "", "", 0
	case len(i.strangers(h.machine.members)) > 0:
		return "somebody has added a member", "", 5 * time.Minute
	case i.contradicted(obj):
		return "somebody has removed a member", "", 3 * time.Minute
	case !obj.Status.Import.Begun() && i.left(h) < len(i.formers):
		return "somebody has removed a former member before the import", "endpoint", 3 * time.Minute
	case i.apart(h):
		return "a former member holds an own one for unconnected", "to connect to", 5 * time.Minute
	}
	return "", "", 0
}

// isFormer reports whether an ID is that of a former member.
func (i *imports) isFormer(id uint64) bool { return i != nil && i.ids[id] }

// left is the number of former members that are left.
func (i *imports) left(h *history) int {
	former, _, _ := i.votes(h.machine.members)
	return former
}

// apart reports whether a former member holds an own one for unconnected until one of them restarts.
func (i *imports) apart(h *history) bool {
	for _, f := range i.formers {
		m := f.run.proc
		if m == nil || m.stopped {
			continue
		}
		for id, info := range h.machine.members {
			if p := i.w.memberAt(info.url); i.own(info) && p != nil && p.id == id && m.linkedTo(p) && m.connectedSince(id).IsZero() {
				return true
			}
		}
	}
	return false
}

// count is the number of former members, which a pass asks as well.
func (i *imports) count() int {
	if i == nil {
		return 0
	}
	return len(i.formers)
}

// alone reports whether the former members alone serve. Available is False then: the clients of the
// EtcdCluster's own Service reach nobody. An own voter that receives a copy of the database serves nobody.
func (i *imports) alone() bool {
	if i == nil {
		return false
	}
	h := i.w.current()
	return h == nil || !slices.ContainsFunc(h.machine.voters(), func(id uint64) bool {
		m := i.w.memberAt(h.machine.members[id].url)
		return i.own(h.machine.members[id]) && m != nil && m.id == id && m.commits() && m.confirms()
	})
}

// contradicted reports whether somebody else has changed the membership, and the status says so: a
// person decides.
func (i *imports) contradicted(obj *api.EtcdCluster) bool {
	return i != nil && !i.meddled.IsZero() && contradicts(obj)
}
