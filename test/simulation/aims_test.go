// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// aim is a coincidence that lives seldom have by themselves. A third of the lives has one, on a
// cluster where it can do harm, and few other faults.
type aim struct {
	name    string
	storage storage
	// least and most bound the size.
	least, most int
	apart       bool // required anti-affinity
	crowded     bool // no node is to spare
	cached      bool // the API server answers lists from caches
	copies      bool // a copy takes longer than a member may take to join
	lies        bool // the tag of the new image
	faults      func(*world) []*fault
}

type storage int

const (
	anyStorage storage = iota
	onNodes            // an emptyDir
	onVolumes
	onLocalVolumes
)

// prepare makes the cluster of a life one on which the aim can do harm.
func (a *aim) prepare(w *world, obj *api.EtcdCluster) {
	obj.Spec.Size = min(max(obj.Spec.Size, a.least), a.most)
	obj.Spec.Pod.AntiAffinity = a.apart
	w.lies = a.lies
	w.copyTakes = 0
	if a.copies {
		w.copyTakes = w.life.between(6*time.Minute, 9*time.Minute, "aim", "copy")
	}
	if a.storage == anyStorage {
		return
	}
	obj.Spec.Pod.Tmpfs, obj.Spec.Pod.PersistentVolumeClaimSpec, w.local = false, nil, a.storage == onLocalVolumes
	if a.storage != onNodes {
		obj.Spec.Pod.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
	}
}

var aims []aim

func init() {
	aims = []aim{
		{name: "bootstrap seen again", least: 3, most: 5, cached: true, faults: (*world).oldView},
		{name: "eviction seen again", least: 3, most: 5, storage: onVolumes, cached: true, faults: (*world).oldEviction},
		{name: "late claims", least: 3, most: 5, storage: onVolumes, faults: (*world).lateClaims},
		{name: "late pods", least: 3, most: 5, faults: (*world).latePods},
		{name: "status not written", least: 1, most: 5, faults: (*world).unwrittenStatus},
		{name: "pods without labels", least: 3, most: 5, faults: (*world).strayPods},
		{name: "note refused", least: 3, most: 5, faults: (*world).refusedNote},
		{name: "hanging disk", least: 3, most: 3, faults: (*world).hangingDisk},
		{name: "first member first", least: 3, most: 5, storage: onNodes, faults: (*world).emptyFirst},
		{name: "disks before the growth", least: 3, most: 5, storage: onNodes, faults: (*world).beforeGrowth},
		{name: "long outage", least: 3, most: 5, storage: onVolumes, faults: (*world).longOutage},
		{name: "edit without room", least: 3, most: 3, storage: onVolumes, faults: (*world).impossibleEdit},
		{name: "lost node in an edit", least: 3, most: 3, storage: onLocalVolumes, faults: (*world).lostNodeInEdit},
		{name: "unreached member", least: 3, most: 5, faults: (*world).unreachedMember},
		{name: "lying tag", least: 1, most: 3, lies: true, faults: (*world).upgrade},
		{name: "long copy", least: 3, most: 3, storage: onNodes, copies: true, faults: (*world).replacement},
		{name: "crashes seen late", least: 3, most: 3, storage: onVolumes, faults: (*world).lateCrashes},
		{name: "half unseen", least: 5, most: 5, faults: (*world).halfUnseen},
		{name: "crowded edit", least: 3, most: 3, storage: onNodes, apart: true, crowded: true, faults: (*world).laterEdit},
		{name: "digests", least: 1, most: 3, faults: (*world).digests},
		{name: "images restored", least: 1, most: 3, faults: (*world).restoredImages},
		{name: "members without labels", least: 1, most: 3, faults: (*world).unlabelledMembers},
		{name: "other repository", least: 1, most: 3, faults: (*world).otherRepository},
		{name: "all disks go back", least: 3, most: 3, faults: (*world).allGoBack},
		{name: "edit while refused", least: 3, most: 3, storage: onVolumes, faults: (*world).refusedEdit},
		{name: "shrink without a record", least: 3, most: 5, faults: (*world).unrecordedShrink},
		{name: "fight over the Services", least: 1, most: 3, faults: (*world).fight},
		{name: "taken name", least: 1, most: 3, faults: (*world).takenName},
	}
}

// aimAt returns a fault of the aim, at a time between two others.
func (w *world) aimAt(what string, least, most time.Duration) *fault {
	return &fault{id: "aim: " + what, at: w.life.between(least, most, "aim", what)}
}

// aimLasts returns how long a fault of the aim lasts.
func (w *world) aimLasts(what string, least, most time.Duration) time.Duration {
	return w.life.between(least, most, "aim lasts", what)
}

// lagging makes the watches of kinds lag.
func (w *world) lagging(f *fault, by time.Duration, resources ...string) *fault {
	lag := func(by time.Duration) func() {
		return func() {
			w.impaired()
			for _, r := range resources {
				w.lags[r] += by
			}
		}
	}
	f.begin, f.end = lag(by), lag(-by)
	return f
}

// edits changes the spec so that all members must follow.
func (w *world) edits(f *fault, processors string) *fault {
	f.begin = func() {
		w.api.edit("etcdclusters", clusterName, func(o metav1.Object) {
			o.(*api.EtcdCluster).Spec.Pod.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(processors)}
		})
	}
	return f
}

// oldEviction lets a node evict its pods. Once the operator has made one again on its volume, it
// restarts, and a cache of the API server shows it the evicted pod.
func (w *world) oldEviction() []*fault {
	evicted := map[string]bool{}
	var seen int64
	evict := w.aimAt("a node evicts its pods", time.Minute, 2*time.Minute)
	evict.begin = func() {
		n := w.nodeOfVoter("evicted")
		if n == nil || !n.up || !w.reachable(n.name, apiPlace) {
			return
		}
		for _, pod := range n.evict() {
			evicted[pod] = true
		}
		seen = w.api.version
	}
	view := w.aimAt("the operator restarts and sees the evicted pods", 0, 0)
	view.at = evict.at
	view.when = func() bool {
		return slices.ContainsFunc(w.api.pods(), func(p *corev1.Pod) bool {
			return evicted[p.Name] && p.Status.Phase == corev1.PodRunning
		})
	}
	view.lasts = w.aimLasts("view", 25*time.Second, 50*time.Second)
	view = w.lagging(view, view.lasts, "pods", "persistentvolumeclaims")
	begin, end := view.begin, view.end
	view.begin = func() {
		begin()
		w.view = seen
		if o := w.operator(); o != nil {
			o.crash()
		}
	}
	view.end = func() {
		w.view = 0
		end()
	}
	return []*fault{evict, view}
}

// nodeOfVoter returns the node of one of the voters, if that runs.
func (w *world) nodeOfVoter(what string) *node {
	h := w.current()
	if h == nil {
		return nil
	}
	ids := h.machine.voters()
	if m := w.memberAt(h.machine.members[ids[w.life.number("aim", what)%uint64(len(ids))]].url); m != nil {
		return m.run.node
	}
	return nil
}

// lateCrashes lets etcd end again and again on all nodes. The operator sees that for long after
// the members have returned, and somebody edits the spec meanwhile.
func (w *world) lateCrashes() []*fault {
	at := w.life.between(time.Minute, 100*time.Second, "aim", "crashes")
	var faults []*fault
	for i, after := range []time.Duration{0, 2500 * time.Millisecond, 6 * time.Second} {
		kill := w.aimAt(fmt.Sprintf("etcd is killed on all nodes (%d)", i), 0, 0)
		kill.at = at + after
		kill.begin = func() {
			for _, n := range w.nodes {
				n.killMembers()
			}
		}
		faults = append(faults, kill)
	}
	late := w.aimAt("watches of pods lag", 0, 0)
	late.at, late.lasts = at+7*time.Second, 40*time.Second
	edit := w.edits(w.aimAt("somebody edits the spec", 0, 0), "300m")
	edit.at = at + w.life.between(13*time.Second, 20*time.Second, "aim", "edit")
	return append(faults, w.lagging(late, 30*time.Second, "pods"), edit)
}

// halfUnseen takes the power from some members of five, or hangs their disks, and cuts the
// operator off from others. A leader counts a member with a hung disk as connected, so etcd does
// not refuse the removal of another one.
// Somebody shrinks the cluster meanwhile: the operator may not remove a member that it does not
// see, since the quorum may need that.
func (w *world) halfUnseen() []*fault {
	var down, unseen []*node
	var hung []*disk
	hang := w.life.number("aim", "hang")%2 == 0
	f := w.aimAt("two members are down, and the operators do not reach two others", time.Minute, 2*time.Minute)
	f.lasts = w.aimLasts("dark", time.Minute, 2*time.Minute)
	operators := []string{"operator", "operator-2"}
	f.begin = func() {
		w.impaired()
		h := w.current()
		if h == nil {
			return
		}
		for _, id := range h.machine.voters() {
			m := w.memberAt(h.machine.members[id].url)
			switch {
			case m == nil || m.leads():
			case len(unseen) < 2:
				unseen = append(unseen, m.run.node)
			case len(down)+len(hung) >= 2:
			case hang:
				hung = append(hung, m.disk)
			default:
				down = append(down, m.run.node)
			}
		}
		for _, n := range down {
			n.powerOff()
		}
		for _, d := range hung {
			d.hung = true
		}
		for _, n := range unseen {
			for _, o := range operators {
				w.cut(o, n.name)
			}
		}
	}
	f.end = func() {
		w.impaired()
		for _, n := range down {
			if !n.up {
				n.powerOn()
			}
		}
		for _, d := range hung {
			d.hung = false
		}
		for _, n := range unseen {
			for _, o := range operators {
				w.heal(o, n.name)
			}
		}
	}
	shrink := w.aimAt("somebody sets the size to 3", 0, 0)
	shrink.at = f.at + w.life.between(5*time.Second, 30*time.Second, "aim", "shrink")
	shrink.begin = func() {
		w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Size = 3 })
	}
	return []*fault{f, shrink}
}

// lateClaims shows the operator each claim long after the pod that uses it.
func (w *world) lateClaims() []*fault {
	f := w.aimAt("watches of persistentvolumeclaims lag", 0, 1200*time.Millisecond)
	f.lasts = w.aimLasts("claims", time.Minute, 2*time.Minute)
	return []*fault{w.lagging(f, w.aimLasts("claim", 20*time.Second, 90*time.Second), "persistentvolumeclaims")}
}

// latePods shows the operator its own pods long after it has made them.
func (w *world) latePods() []*fault {
	f := w.aimAt("watches of pods lag", 0, 5*time.Second)
	f.lasts = w.aimLasts("pods", time.Minute, 2*time.Minute)
	return []*fault{w.lagging(f, w.aimLasts("pod", 10*time.Second, 40*time.Second), "pods")}
}

// unwrittenStatus keeps the operator from writing the status of a new cluster.
func (w *world) unwrittenStatus() []*fault {
	to := w.aimLasts("status", 20*time.Second, 90*time.Second)
	w.skies = append(w.skies, weather{to: to, kinds: []string{"500", "lost"}, p: 0.7, only: " PUT etcdclusters/" + clusterName + "/status"})
	f := w.aimAt("the operator crashes", 10*time.Second, time.Minute)
	f.begin = func() {
		if o := w.operator(); o != nil {
			o.crash()
		}
	}
	return []*fault{f}
}

// strayPods takes the labels of pods that wait to join.
func (w *world) strayPods() []*fault {
	var faults []*fault
	for i := range 3 {
		f := w.aimAt(fmt.Sprintf("a pod that waits to join loses a label (%d)", i), 4*time.Second, 100*time.Second)
		f.when = func() bool { return w.waiting() != nil }
		f.begin = func() { w.unlabel(w.waiting().Name) }
		faults = append(faults, f)
	}
	grow := w.aimAt("somebody deletes a pod", 70*time.Second, 90*time.Second)
	grow.begin = w.deletePod
	return append(faults, grow)
}

// waiting returns a pod that belongs to no member yet, if any.
func (w *world) waiting() *corev1.Pod {
	h := w.current()
	if h == nil {
		return nil
	}
	for _, p := range w.api.pods() {
		joined := slices.ContainsFunc(slices.Collect(maps.Values(h.machine.members)), func(info memberInfo) bool { return w.hostOf(info.url) == p.Name })
		if !joined && p.DeletionTimestamp == nil && p.Labels["etcd_cluster"] != "" {
			return p
		}
	}
	return nil
}

func (w *world) unlabel(pod string) {
	w.narrate("fault", "it is %s", pod)
	w.api.edit("pods", pod, func(o metav1.Object) {
		labels := maps.Clone(o.GetLabels())
		delete(labels, "etcd_cluster")
		o.SetLabels(labels)
	})
}

func (w *world) deletePod() {
	if pods := w.api.pods(); len(pods) > 0 {
		pod := pods[w.life.number("aim", "pod")%uint64(len(pods))]
		w.narrate("fault", "it is %s", pod.Name)
		w.api.remove(w.api.shelves["pods"], storedKey(namespace, pod.Name), nil)
	}
}

// refusedNote lets admission refuse all changes of pods while a learner joins.
func (w *world) refusedNote() []*fault {
	f := w.aimAt("admission refuses changes of pods while a member joins", 4*time.Second, 30*time.Second)
	f.lasts = w.aimLasts("refusal", 20*time.Second, 90*time.Second)
	f.when = func() bool {
		h := w.current()
		return h != nil && slices.ContainsFunc(slices.Collect(maps.Values(h.machine.members)), func(info memberInfo) bool { return info.learner })
	}
	f.begin = func() { w.api.refusal = "a webhook denied the request" }
	f.end = func() { w.api.refusal = "" }
	return []*fault{f}
}

// hangingDisk hangs the disk of a member, and edits the spec meanwhile.
func (w *world) hangingDisk() []*fault {
	l := w.life
	hang := w.aimAt("the disk of a member hangs", time.Minute, 100*time.Second)
	hang.lasts = w.aimLasts("hang", time.Minute, 2*time.Minute)
	var hung *disk
	hang.begin = func() {
		h := w.current()
		if h == nil {
			return
		}
		ids := h.machine.voters()
		id := ids[l.number("aim", "whose disk")%uint64(len(ids))]
		if m := w.memberAt(h.machine.members[id].url); m != nil {
			hung = m.disk
			hung.hung = true
			w.narrate("fault", "it is that of %s", hung.name)
		}
	}
	hang.end = func() {
		if hung != nil {
			hung.hung = false
		}
	}
	edit := w.aimAt("somebody edits the spec while a disk hangs", 0, 0)
	edit.at = hang.at + l.between(blindFor+2*time.Second, 40*time.Second, "aim", "edit in the hang")
	switch l.number("aim", "edit") % 3 {
	case 0:
		size := 1 + int(l.number("aim", "size")%2)
		edit.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Size = size })
		}
	case 1:
		edit.begin = w.setVersion
	case 2:
		edit = w.edits(edit, "300m")
	}
	return []*fault{hang, edit}
}

func (w *world) setVersion() {
	w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Version = newVersion })
}

// returns makes all nodes lose power. The node of the first member returns before the others.
func (w *world) returns(f *fault, before func(first *node)) *fault {
	var first *node
	f.begin = func() {
		for _, n := range w.nodes {
			for _, r := range n.sorted() {
				if r.pod != nil && parseFlags(r.pod.Spec.Containers[0].Command).fresh {
					first = n
				}
			}
		}
		for _, n := range w.nodes {
			n.powerOff()
		}
	}
	f.lasts = w.aimLasts("off", 3*time.Second, 20*time.Second)
	f.end = func() {
		if first != nil && !first.up {
			before(first)
			first.powerOn()
		}
		for i, n := range w.nodes {
			w.after(w.life.between(30*time.Second, 50*time.Second, "aim", "return", i), func() {
				if !n.up {
					n.powerOn()
				}
			})
		}
	}
	return f
}

// emptyFirst returns the node of the first member with an empty disk, before the others.
func (w *world) emptyFirst() []*fault {
	return []*fault{w.returns(w.aimAt("all nodes lose power, and the first member's is back first, empty", time.Minute, 3*time.Minute), func(first *node) { first.wipe() })}
}

// beforeGrowth returns the node of the first member first, with the disk of the time when it was
// alone.
func (w *world) beforeGrowth() []*fault {
	var old map[*disk]*raft.MemoryStorage
	var look func()
	look = func() {
		switch h := w.current(); {
		case h != nil:
			old = w.copyDisks(w.nodes)
		case w.elapsed() < time.Minute:
			w.after(50*time.Millisecond, look)
		}
	}
	w.after(0, look)
	return []*fault{w.returns(w.aimAt("all nodes lose power, and the first member's is back first, as before the growth", 70*time.Second, 3*time.Minute), func(first *node) {
		only := maps.Clone(old)
		maps.DeleteFunc(only, func(d *disk, _ *raft.MemoryStorage) bool {
			return !slices.ContainsFunc(first.sorted(), func(r *podRun) bool { return r.pod != nil && w.disks[r.diskKey()] == d })
		})
		w.rollBack(only)
	})}
}

// longOutage cuts all members off from each other for longer than a member may be silent. They
// find each other one by one.
func (w *world) longOutage() []*fault {
	f := w.aimAt("no node reaches another", time.Minute, 90*time.Second)
	f.lasts = w.aimLasts("outage", 11*time.Minute, 13*time.Minute)
	var healed []func()
	f.begin = func() {
		for i, n := range w.nodes {
			for _, m := range w.nodes[:i] {
				w.cut(n.name, m.name)
				w.cut(m.name, n.name)
				healed = append(healed, func() {
					w.heal(n.name, m.name)
					w.heal(m.name, n.name)
				})
			}
		}
	}
	f.end = func() {
		for i, heal := range healed {
			w.after(w.life.between(0, 25*time.Second, "aim", "heal", i), heal)
		}
	}
	return []*fault{f}
}

// impossibleEdit asks for more than any node has, and etcd ends on all nodes before somebody
// corrects that.
func (w *world) impossibleEdit() []*fault {
	edit := w.edits(w.aimAt("somebody asks for more processors than any node has", time.Minute, 100*time.Second), "1000")
	edit.lasts = w.aimLasts("impossible", 90*time.Second, 3*time.Minute)
	edit.end = w.edits(&fault{}, "300m").begin
	faults := []*fault{edit}
	for i := range 4 {
		kill := w.aimAt(fmt.Sprintf("etcd is killed on a node (%d)", i), 0, 0)
		kill.at = edit.at + w.life.between(5*time.Second, 80*time.Second, "aim", "kill", i)
		kill.begin = w.nodes[i%len(w.nodes)].killMembers
		faults = append(faults, kill)
	}
	return faults
}

// lostNodeInEdit loses the node of a member whose volume is local to it, or its disk, at the
// moment at which the member's new pod follows an edit and the others do not yet.
func (w *world) lostNodeInEdit() []*fault {
	l := w.life
	edit := w.edits(w.aimAt("somebody edits the spec", time.Minute, 100*time.Second), "300m")
	loss := w.aimAt("the node of a member that follows the edit is gone for good", 0, 0)
	loss.at = edit.at
	loss.when = func() bool { return w.following() != nil }
	if l.chance(0.5, "aim", "wipe") {
		var n *node
		loss.id = "aim: the node of a member that follows the edit comes back with an empty disk"
		loss.lasts = w.aimLasts("off", 3*time.Second, 10*time.Second)
		loss.begin = func() {
			n = w.following()
			n.powerOff()
		}
		loss.end = func() {
			n.wipe()
			n.powerOn()
		}
	} else {
		loss.begin = func() {
			n := w.following()
			n.powerOff()
			n.gone = true
		}
	}
	return []*fault{edit, loss}
}

// following returns the node of a member whose pod follows the last edit, and does not serve yet.
func (w *world) following() *node {
	obj := w.api.cluster()
	for _, n := range w.nodes {
		for _, r := range n.sorted() {
			if n.up && r.pod != nil && r.pod.DeletionTimestamp == nil && r.proc == nil && follows(r.pod, obj) && w.disks[r.diskKey()].hasData() {
				return n
			}
		}
	}
	return nil
}

// unreachedMember cuts the operator off from a member for longer than a member may be silent.
func (w *world) unreachedMember() []*fault {
	f := w.aimAt("the operators are cut off from the node of a member", time.Minute, 2*time.Minute)
	f.lasts = w.aimLasts("cut", 12*time.Minute, 15*time.Minute)
	var n *node
	each := func(do func(from, to string)) {
		w.impaired()
		if n != nil {
			do("operator", n.name)
			do("operator-2", n.name)
		}
	}
	f.begin = func() {
		n = w.nodeOfVoter("unreached")
		each(w.cut)
	}
	f.end = func() { each(w.heal) }
	return []*fault{f}
}

func (w *world) upgrade() []*fault {
	f := w.aimAt("somebody sets the version", time.Minute, 3*time.Minute)
	f.begin = w.setVersion
	return []*fault{f}
}

// digests lets admission name images by digests from the start.
func (w *world) digests() []*fault {
	f := w.aimAt("admission names images by digests", 0, time.Second)
	f.lasts = w.aimLasts("digests", 2*time.Minute, 4*time.Minute)
	f.begin = func() { w.api.pinned = true }
	f.end = func() { w.api.pinned = false }
	return append([]*fault{f}, w.upgrade()...)
}

// restoredImages lets admission keep the images of pods for a while, and somebody sets the version.
func (w *world) restoredImages() []*fault {
	f := w.aimAt("admission keeps the images of pods as they are", time.Minute, 100*time.Second)
	f.lasts = w.aimLasts("kept", 20*time.Second, 2*time.Minute)
	f.begin = func() { w.api.keptImages = true }
	f.end = func() { w.api.keptImages = false }
	version := w.aimAt("somebody sets the version", 0, 0)
	version.at = f.at + time.Second
	version.begin = w.setVersion
	return []*fault{f, version}
}

// unlabelledMembers takes the labels of all pods. In half of the lives the operator crashes before,
// and begins without having seen them.
func (w *world) unlabelledMembers() []*fault {
	f := w.aimAt("all pods lose a label", 30*time.Second, 2*time.Minute)
	crash := w.life.chance(0.5, "aim", "crash")
	f.begin = func() {
		if o := w.operator(); o != nil && crash {
			o.crash()
		}
		for _, p := range w.api.pods() {
			w.unlabel(p.Name)
		}
	}
	return []*fault{f}
}

func (w *world) otherRepository() []*fault {
	f := w.aimAt("somebody sets another repository", time.Minute, 3*time.Minute)
	f.begin = func() {
		w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Repository = "mirror.example/etcd" })
	}
	return []*fault{f}
}

// allGoBack makes all nodes lose power at the same moment, and return with the disks of an earlier
// moment: a quorum answers, and has forgotten writes.
func (w *world) allGoBack() []*fault {
	f := w.aimAt("all nodes lose power, and all disks are those of some time before", 2*time.Minute, 4*time.Minute)
	f.lasts = w.aimLasts("off", 3*time.Second, 20*time.Second)
	var old map[*disk]*raft.MemoryStorage
	w.after(f.at-w.aimLasts("back", 5*time.Second, 70*time.Second), func() { old = w.copyDisks(w.nodes) })
	f.begin = func() {
		for _, n := range w.nodes {
			n.powerOff()
		}
	}
	f.end = func() {
		w.rollBack(old)
		for _, n := range w.nodes {
			if !n.up {
				n.powerOn()
			}
		}
	}
	return []*fault{f}
}

// refusedEdit lets admission refuse pods while somebody edits the spec.
func (w *world) refusedEdit() []*fault {
	f := w.aimAt("admission refuses pods", time.Minute, 2*time.Minute)
	f.lasts = w.aimLasts("refused", time.Minute, 2*time.Minute)
	f.begin = func() { w.api.refusal = "a webhook denied the request" }
	f.end = func() { w.api.refusal = "" }
	edit := w.edits(w.aimAt("somebody edits the spec", 0, 0), "300m")
	edit.at = f.at + time.Second
	return []*fault{f, edit}
}

// unrecordedShrink keeps the operator from writing the status while somebody shrinks the cluster.
func (w *world) unrecordedShrink() []*fault {
	shrink := w.aimAt("somebody sets the size to 1", time.Minute, 100*time.Second)
	shrink.begin = func() {
		w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Size = 1 })
	}
	w.skies = append(w.skies, weather{
		from: shrink.at - time.Second, to: shrink.at + w.aimLasts("status", 20*time.Second, 90*time.Second),
		kinds: []string{"500"}, p: 1, only: " PUT etcdclusters/" + clusterName + "/status",
	})
	return []*fault{shrink}
}

// fight lets somebody undo each correction of the Services and of the budget. The operator must
// notice.
func (w *world) fight() []*fault {
	f := w.aimAt("somebody takes a label from the Services and the PodDisruptionBudget, again and again", 30*time.Second, time.Minute)
	until := f.at + w.aimLasts("fight", 4*time.Minute, 5*time.Minute)
	var undo func()
	var began time.Duration // of the fight: the Service may come later than the fault
	undo = func() {
		w.checks.acts.futile = began > 0 && w.elapsed() > began+time.Minute && w.elapsed() < until
		if w.elapsed() > until {
			return
		}
		take := func(o metav1.Object) {
			began = cmp.Or(began, w.elapsed())
			labels := maps.Clone(o.GetLabels())
			delete(labels, "app")
			o.SetLabels(labels)
		}
		w.api.edit("services", clusterName+"-client", take)
		w.api.edit("services", clusterName, take)
		w.api.edit("poddisruptionbudgets", clusterName, take)
		w.after(500*time.Millisecond, undo)
	}
	f.begin = undo
	return []*fault{f}
}

// takenName begins with a Service of somebody else that has the name of the peer Service.
func (w *world) takenName() []*fault {
	w.api.put(w.api.shelves["services"], &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: clusterName, UID: "00000000-0000-4000-8000-bbbbbbbbbbbb", CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "00000000-0000-4000-8000-cccccccccccc", Controller: new(true)}},
	}})
	w.after(time.Minute, func() { w.checks.acts.futile = true })
	f := w.aimAt("somebody deletes the Service that has the name of the peer Service", 3*time.Minute, 4*time.Minute)
	f.begin = func() {
		w.checks.acts.futile = false
		if s := w.api.shelves["services"]; s.objects[storedKey(namespace, clusterName)] != nil {
			w.api.remove(s, storedKey(namespace, clusterName), nil)
		}
	}
	return []*fault{f}
}

func (w *world) laterEdit() []*fault {
	return []*fault{w.edits(w.aimAt("somebody edits the spec", time.Minute, 3*time.Minute), "300m")}
}

// replacement deletes a pod without a volume, once new members need a copy of the database.
func (w *world) replacement() []*fault {
	f := w.aimAt("somebody deletes a pod", 2*time.Minute, 3*time.Minute)
	f.begin = w.deletePod
	return []*fault{f}
}
