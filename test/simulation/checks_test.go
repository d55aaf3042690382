// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/raft/v3/raftpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	// blindFor is how long the operator may not notice an unhealthy member.
	blindFor = 20 * time.Second
	// mostWrites and mostPasses bound what the operator does in a minute, and eachChange what it
	// writes besides for each change of the membership. mostQuiet bounds its
	// writes in a minute in which nothing has happened for quietAfter.
	mostWrites = 150
	eachChange = 4
	mostQuiet  = 40
	quietAfter = 6 * time.Minute
	mostPasses = 400
	// disagree is how long status.conditions may differ from the clients' view: the operator's
	// period, the timeouts for a hanging member, and those of clients.
	disagree = 30 * time.Second
)

// checks are the invariants.
type checks struct {
	w         *world
	failure   string
	sick      map[uint64]time.Time // unhealthy voters, and since when
	writes    int
	changes   int // of the membership, in this minute
	etcdCalls int
	mostPods  int // in this minute
	mostWrote int
	// hampered is when something last kept the operator from its work.
	hampered time.Time
	differ   time.Time
	unnamed  int // seconds without progress, while the status did not say why
	// atLeast is the highest revision of a survivor, when the operator chose what to recover from; 0: it
	// did not.
	atLeast int64
	// accepted is true if a person has given up data.
	accepted bool
	conduct  conduct
	acts     acts
}

// fail ends the life because of a violation.
func (w *world) fail(format string, args ...any) {
	if w.checks.failure == "" {
		w.checks.failure = fmt.Sprintf(format, args...)
		w.narrate("VIOLATION", "%s", w.checks.failure)
	}
}

func (w *world) impaired() { w.checks.hampered = time.Now() }

// remember compares an entry that a member applies with the entry that others have applied at
// the same index.
func (w *world) remember(m *member, e *pb.Entry, content string) {
	h := w.histories[m.clusterID]
	if h == nil {
		h = &history{entries: map[uint64]string{}, machine: newMachine()}
		w.histories[m.clusterID] = h
	}
	content = strconv.FormatUint(e.GetTerm(), 10) + " " + content
	i := e.GetIndex()
	switch was, ok := h.entries[i]; {
	case !ok:
		h.entries[i] = content
		h.last = max(h.last, i)
		w.note(strconv.FormatUint(m.clusterID, 16) + " " + strconv.FormatUint(i, 10) + " " + content)
	case was != content && !h.served:
		// No client relies on it: a seed that restarted from scratch before it served.
		fresh := newMachine()
		if h.restored {
			fresh = h.machine
		}
		*h = history{entries: map[uint64]string{i: content}, last: i, machine: fresh, restored: h.restored, replaced: h.replaced}
	case was != content && !w.rolledBack && !h.replaced:
		w.fail("two histories under cluster ID %x: entry %d is %q to %s, and was %q", m.clusterID, i, content, m.disk.name, was)
	}
}

// membershipChanged notes the membership that a quorum has agreed on.
func (w *world) membershipChanged(m *member, index uint64) {
	if h := w.histories[m.clusterID]; h != nil && index >= h.last {
		w.progressed, w.reconfigured = time.Now(), time.Now()
		w.checks.changes++
		h.machine.members, h.machine.removed = m.machine.clone().members, m.machine.clone().removed
	}
}

// removed notes that a quorum has removed a member.
func (w *world) removed(clusterID, id uint64) {
	if h := w.histories[clusterID]; h != nil {
		if h.gone == nil {
			h.gone = map[uint64]bool{}
		}
		h.gone[id] = true
	}
}

// ledBy takes the membership from a leader that commits. After disks went back, the log is
// shorter than it was, so its length does not say whose membership is the newest.
func (w *world) ledBy(m *member) {
	h := w.histories[m.clusterID]
	if !w.rolledBack || h == nil || maps.Equal(h.machine.members, m.machine.members) && maps.Equal(h.machine.removed, m.machine.removed) {
		return
	}
	w.progressed, w.reconfigured = time.Now(), time.Now()
	h.machine.members, h.machine.removed = maps.Clone(m.machine.members), maps.Clone(m.machine.removed)
}

// current returns the history that clients rely on.
func (w *world) current() *history {
	var best *history
	for _, h := range w.histories {
		if h.served && !h.replaced && (best == nil || h.last > best.last) {
			best = h
		}
	}
	return best
}

// well reports whether a voter is healthy, or the operator can't know yet that it is not.
func (c *checks) well(o *operator, id uint64) bool {
	since, sick := c.sick[id]
	if h := c.w.current(); h != nil && c.conduct.stopped(o, id, c.w.memberAt(h.machine.members[id].url)) {
		return false
	}
	if h := c.w.current(); sick && h != nil {
		if m := c.w.memberAt(h.machine.members[id].url); m != nil && m.id == id && m.commits() {
			return true
		}
	}
	return !sick || time.Since(since) < blindFor
}

// look runs the checks that need no occasion.
func (c *checks) look() {
	w := c.w
	c.mostPods = max(c.mostPods, len(w.api.pods())+w.imports.count())
	h := w.current()
	if h == nil {
		return
	}
	for id, info := range h.machine.members {
		m := w.memberAt(info.url)
		if m != nil && m.id == id && m.commits() {
			delete(c.sick, id)
		} else if _, known := c.sick[id]; !known {
			c.sick[id] = time.Now()
		}
	}
	if w.wentBack && w.hampers() {
		w.wentBack = false // it may be ahead of the record before the operator's next pass
	}
	c.conduct.look(w, h)
	c.noted(h)
	c.budgeted(h)
	w.imports.look(h)
	c.compareAvailable()
	c.compareNamed()
}

// compareNamed checks that the status says what the operator waits for, after nothing has
// moved for some time. Earlier, the cluster may still be converging.
func (c *checks) compareNamed() {
	w := c.w
	obj := w.api.cluster()
	if obj == nil || obj.Spec.Paused || w.quietFor() < 150*time.Second || time.Since(w.progressed) < 100*time.Second || named(obj) != "" || w.asSpecified(obj) {
		c.unnamed = 0
		return
	}
	if c.unnamed++; c.unnamed == 30 {
		w.fail("nothing moves, the cluster is not as specified, and status does not say why: %s", w.describe())
	}
}

// compareAvailable compares the condition Available with the clients' view.
func (c *checks) compareAvailable() {
	w := c.w
	obj := w.api.cluster()
	if w.hampers() {
		w.impaired()
	}
	if obj == nil || obj.DeletionTimestamp != nil || w.imports.alone() || obj.Spec.Paused && w.api.shelves["services"].objects[storedKey(namespace, clusterName+"-client")] == nil || time.Since(c.hampered) < disagree || (w.wiped || w.taken()) && contradicts(obj) || w.imports.contradicted(obj) {
		// The operator of an earlier release leaves no record. Volumes of members that it has
		// just removed then look like those of lost ones, and a person decides. A paused operator
		// creates no Service again, and clients without one ask all pods.
		c.differ = time.Time{}
		return
	}
	available := obj.Status.Condition(api.ClusterConditionAvailable).Status == corev1.ConditionTrue
	served, failed := false, true
	for _, cl := range w.clients {
		served = served || cl.since.IsZero() && cl.done > 0
		failed = failed && !cl.since.IsZero()
	}
	if available && failed || !available && served && !failed && obj.Status.Phase != api.ClusterPhaseNone && c.allServed() {
		if c.differ.IsZero() {
			c.differ = time.Now()
		}
		if time.Since(c.differ) > disagree {
			w.fail("status says Available=%t (%s), and clients have seen the opposite for %s", available, obj.Status.Condition(api.ClusterConditionAvailable).Message, disagree)
		}
		return
	}
	c.differ = time.Time{}
}

// hampers reports whether something keeps the operator from its work now. A node whose kubelet
// is cut off from the API server counts: its pods leave the Service, and still serve.
func (w *world) hampers() bool {
	if o := w.operator(); o == nil || o.frozen {
		return true
	}
	for link := range w.cuts {
		if strings.Contains(link, "operator") || strings.HasSuffix(link, ">"+apiPlace) {
			return true
		}
	}
	for _, by := range w.lags {
		if by > 0 {
			return true
		}
	}
	return false
}

// contradicts reports whether the status says that the data differ from the recorded ones.
// Clients use them until a person decides.
func contradicts(obj *api.EtcdCluster) bool {
	return slices.Contains([]string{"Members forgotten", "Cluster ID changed", "Data went back"}, obj.Status.Condition(api.ClusterConditionAvailable).Reason)
}

func (c *checks) allServed() bool {
	return !slices.ContainsFunc(c.w.clients, func(cl *client) bool { return !cl.since.IsZero() })
}

// wrote counts a write to the API server.
func (c *checks) wrote(o *operator, r *request) {
	if o.kin != &c.w.operators {
		c.w.backups.wrote(o, r)
		return
	}
	c.repeats(o, r)
	if r.shelf.kind.resource != "events" && r.shelf.kind.resource != "leases" {
		c.writes++
	}
	if r.method != http.MethodDelete && r.shelf.kind.resource == "pods" {
		c.w.narrate("operator", "%s", r)
		if pod := c.imageOf(r); pod != nil {
			c.restarts(o, pod, "the change of its image")
		}
	}
}

// answered notes what an operator's write has done, once the API server has decided.
func (c *checks) answered(o *operator, r *request, code int) {
	if o.kin != &c.w.operators || code >= http.StatusBadRequest {
		return
	}
	if pod := c.imageOf(r); pod != nil {
		c.restarted(o, pod)
	}
}

// imageOf returns the pod whose image a request changes, or nil.
func (c *checks) imageOf(r *request) *corev1.Pod {
	if r.shelf.kind.resource != "pods" || r.method != http.MethodPatch || r.patch != types.StrategicMergePatchType {
		return nil
	}
	return c.w.api.pod(r.name)
}

// minute checks what the operator did in a minute.
func (c *checks) minute() {
	c.mostWrote = max(c.mostWrote, c.writes)
	if c.writes > mostWrites+eachChange*c.changes {
		c.w.fail("%d writes to the API server in a minute", c.writes)
	}
	if c.w.quietFor() > quietAfter && time.Since(c.w.reconfigured) > quietAfter && c.writes > mostQuiet {
		c.w.fail("%d writes to the API server in a minute, and nothing has happened for %s", c.writes, quietAfter)
	}
	// A pass asks each member for its status and for a read, and one for the membership and the
	// version.
	if calls := mostPasses * (2*c.mostPods + 2); c.etcdCalls > calls {
		c.w.fail("%d calls to %d members in a minute", c.etcdCalls, c.mostPods)
	}
	c.writes, c.changes, c.etcdCalls, c.mostPods = 0, 0, 0, 0
	clear(c.acts.same)
}

// memberOf returns the ID of the member whose data a disk holds, in the history that counts.
func (c *checks) memberOf(d *disk) (uint64, *history) {
	if !d.hasData() {
		return 0, nil
	}
	h := c.w.histories[d.clusterID]
	if h == nil || !h.served {
		return 0, nil
	}
	return d.member, h
}

// deletes checks each deletion by an operator.
func (c *checks) deletes(o *operator, resource string, obj metav1.Object) {
	if o == nil || c.w.backups.destroys(o, resource, obj) {
		return
	}
	var d *disk
	switch obj := obj.(type) {
	case *corev1.Pod:
		c.w.narrate(o.name, "deletes pod %s", obj.Name)
		if !o.seen[obj.UID] {
			c.w.fail("the operator deletes pod %s, and has only seen an earlier pod of that name", obj.Name)
		}
		c.gives(o, obj)
		c.restarts(o, obj, "the deletion of its pod")
		c.restarted(o, obj)
		if claimOf(obj) != "" {
			return
		}
		d = c.w.disks[c.w.diskKeyOf(obj)]
	case *corev1.PersistentVolumeClaim:
		c.w.narrate(o.name, "deletes PersistentVolumeClaim %s", obj.Name)
		d = c.w.disks["volume "+string(obj.UID)]
	default:
		return
	}
	id, h := c.memberOf(d)
	if h == nil || c.accepted {
		return
	}
	c.forgotten(id, h, d.name)
	if _, is := h.machine.members[id]; is && !h.machine.removed[id] {
		c.w.fail("the operator deletes the data of %s (%s %s), whom no quorum has removed", d.name, resource, obj.GetName())
	}
}

// restarts checks an act that makes a voter unavailable for some time.
func (c *checks) restarts(o *operator, pod *corev1.Pod, act string) {
	d := c.w.disks[c.w.diskKeyOf(pod)]
	id, h := c.memberOf(d)
	if h == nil {
		return
	}
	voters := h.machine.voters()
	m := c.w.memberAt(h.machine.members[id].url)
	if !slices.Contains(voters, id) {
		return
	}
	c.leads(o, h, id, act)
	if len(voters) < 3 || m == nil && !c.w.aboutToRestart(h, id) || m != nil && m.id != id || !c.well(o, id) {
		return
	}
	n := 0
	for _, v := range voters {
		if v != id && c.well(o, v) {
			n++
		}
	}
	if n+1 >= etcd.Quorum(len(voters)) && n < etcd.Quorum(len(voters)) {
		c.w.fail("%s takes %s: %d of %d voters are left", act, d.name, n, len(voters))
	}
}

// restarted notes that an operator has restarted a voter.
func (c *checks) restarted(o *operator, pod *corev1.Pod) {
	if id, h := c.memberOf(c.w.disks[c.w.diskKeyOf(pod)]); h != nil && slices.Contains(h.machine.voters(), id) {
		c.conduct.restarts(o, id, c.w.memberAt(h.machine.members[id].url))
	}
}

// removes checks the removal of a member.
func (c *checks) removes(o *operator, m *member, id uint64) {
	h := c.w.histories[m.clusterID]
	if h == nil {
		return
	}
	c.needless(m, h, id)
	c.hasty(m, h, id)
	voters := h.machine.voters()
	if !slices.Contains(voters, id) {
		return
	}
	c.leads(o, h, id, "the removal")
	before, after := 0, 0
	for _, v := range voters {
		if c.well(o, v) {
			before++
			if v != id {
				after++
			}
		}
	}
	if before >= etcd.Quorum(len(voters)) && after < etcd.Quorum(len(voters)-1) {
		c.w.fail("the operator removes %s: of the %d voters that are left, %d are well", c.w.nameOf(m, id), len(voters)-1, after)
	}
}

// needless checks that the removal of a member has a reason: the size is smaller, or the
// member does not work. An edit that the operator has not seen yet does not count, nor do the
// member's latest events. A voter that receives a copy is not ready: an operator that does not reach it can't
// know why.
func (c *checks) needless(through *member, h *history, id uint64) {
	w := c.w
	obj := w.api.cluster()
	info, is := h.machine.members[id]
	if !is || obj == nil || len(h.machine.members) > obj.Spec.Size || time.Since(w.edited) < 15*time.Minute || w.anyLag() {
		return
	}
	m := w.memberAt(info.url)
	if m == nil || m.id != id {
		return
	}
	if pod := w.api.pod(m.run.name); pod == nil || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
		return
	}
	switch {
	case info.learner && m.receiving > 0 && time.Since(m.startedAt) < 12*time.Minute:
		w.fail("the operator removes %s, which receives a copy of the database", w.nameOf(through, id))
	case c.makesRoom(h, obj, m.run.name), w.imports.takesBack(h):
	case !info.learner && m.serving && m.confirms() && time.Since(m.startedAt) > time.Minute && c.sick[id].IsZero() && w.linkedFor(m.run.node, 2*time.Minute):
		w.fail("the operator removes %s, which is well", w.nameOf(through, id))
	}
}

// makesRoom reports whether a member leaves so that its replacement gets its node. Only a
// replacement can follow the edit, and it has found no node beside the members for a minute.
func (c *checks) makesRoom(h *history, obj *api.EtcdCluster, leaving string) bool {
	if pod := c.w.api.pod(leaving); pod == nil || claimOf(pod) != "" || follows(pod, obj) || len(h.machine.voters()) < 3 {
		return false
	}
	return slices.ContainsFunc(c.w.api.pods(), func(p *corev1.Pod) bool {
		joined := slices.ContainsFunc(slices.Collect(maps.Values(h.machine.members)), func(info memberInfo) bool { return strings.Contains(info.url, "//"+p.Name+".") })
		return !joined && p.DeletionTimestamp == nil && p.Spec.NodeName == "" && keepsApart(p) && follows(p, obj) &&
			time.Since(p.CreationTimestamp.Time) >= time.Minute
	})
}

// follows reports whether a pod follows the resources in the spec.
func follows(pod *corev1.Pod, obj *api.EtcdCluster) bool {
	return equality.Semantic.DeepEqual(pod.Spec.Containers[0].Resources.Requests, obj.Spec.Pod.Resources.Requests)
}

func (w *world) anyLag() bool {
	for _, by := range w.lags {
		if by > 0 {
			return true
		}
	}
	return false
}

// linkedFor reports whether a node has been linked to the API server for some time.
func (w *world) linkedFor(n *node, d time.Duration) bool {
	return w.reachable(n.name, apiPlace) && time.Since(w.linked[pair(n.name, apiPlace)]) > d && time.Since(n.since) > d
}

// quietFor returns how long no fault has begun, lasted or ended, and nothing was hindered.
func (w *world) quietFor() time.Duration {
	if w.lasting > 0 {
		return 0
	}
	return min(w.elapsed(), time.Since(w.disturbed), time.Since(w.checks.hampered), time.Since(w.edited))
}
