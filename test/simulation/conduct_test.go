// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// Some acts do harm only if something else fails at the same moment, which is rare even here.
// The checks of this file look at the act itself.

// conduct is what the checks remember of the operator's acts.
type conduct struct {
	// restarted are the voters that an operator has restarted, until it knows that they commit
	// again.
	restarted map[uint64]restart
	// lostAt and backAt are when the quorum was last lost, and when it returned.
	lostAt, backAt time.Time
}

type restart struct {
	by   *operator
	proc *member
	at   time.Time
}

// outage is the least time without a quorum that the operator can't miss.
const outage = time.Minute

// restarts notes that an operator restarts a voter.
func (c *conduct) restarts(o *operator, id uint64, m *member) {
	if c.restarted == nil {
		c.restarted = map[uint64]restart{}
	}
	c.restarted[id] = restart{o, m, time.Now()}
}

// confirms notes that a member has confirmed a read for the operator.
func (c *conduct) confirms(m *member) {
	if c.restarted[m.id].proc != m {
		delete(c.restarted, m.id)
	}
}

// stopped reports whether the same process of the operator has restarted a voter that does not
// commit again yet. It knows that without an observation.
func (c *conduct) stopped(o *operator, id uint64, m *member) bool {
	r, is := c.restarted[id]
	if !is || r.by != o {
		return false
	}
	if m == nil || m.id != id {
		return true
	}
	// Where admission leaves the image as it was, the process stays.
	return !m.commits() || m == r.proc && time.Since(r.at) < time.Second
}

// aboutToRestart reports whether a member's etcd has just ended for the first time, and its kubelet
// is about to start it again.
func (w *world) aboutToRestart(h *history, id uint64) bool {
	name := w.hostOf(h.machine.members[id].url)
	return slices.ContainsFunc(w.nodes, func(n *node) bool {
		r := n.runOf(name)
		return r != nil && r.stage == inEtcd && r.tries <= 1 && r.pod != nil && w.disks[r.diskKey()].hasData()
	})
}

// look notes when there is a quorum.
func (c *conduct) look(w *world, h *history) {
	committing := slices.ContainsFunc(h.machine.voters(), func(id uint64) bool {
		m := w.memberAt(h.machine.members[id].url)
		return m != nil && m.id == id && m.commits()
	})
	switch {
	case !committing && c.lostAt.IsZero():
		c.lostAt = time.Now()
	case committing && !c.lostAt.IsZero():
		if time.Since(c.lostAt) >= outage {
			c.backAt = time.Now()
		}
		c.lostAt = time.Time{}
	}
}

// hasty checks that the operator removes no member just after an outage, while the member's
// data is where it can run: like the others, it may be about to return.
func (c *checks) hasty(m *member, h *history, id uint64) {
	w := c.w
	obj := w.api.cluster()
	if obj == nil || len(h.machine.members) > obj.Spec.Size || time.Since(c.conduct.backAt) > 15*time.Second || time.Since(c.hampered) < outage+30*time.Second || time.Since(w.edited) < 15*time.Minute {
		return
	}
	if !h.machine.members[id].learner && w.keeps(id) {
		w.fail("the operator removes %s, whose data is there, %s after the quorum has returned", w.nameOf(m, id), time.Since(c.conduct.backAt))
	}
}

// creates checks a pod that an operator makes.
func (c *checks) creates(o *operator, pod *corev1.Pod) {
	w := c.w
	obj := w.api.cluster()
	if o == nil || o.kin != &w.operators || obj == nil {
		return
	}
	fresh := parseFlags(pod.Spec.Containers[0].Command).fresh
	if fresh && w.backups == nil && w.current() != nil {
		w.fail("the operator makes the first member %s of a cluster that has served", pod.Name)
	}
	if fresh && !slices.Equal(obj.Status.Members.Unready, []string{pod.Name}) {
		w.fail("the operator makes the first member %s, and the status names %q", pod.Name, obj.Status.Members.Unready)
	}
	if rejoins(pod) {
		// Without a quorum, a pod for each volume is right. Nobody knows then which volumes are
		// empty, because their pods had yet to join: such a pod starts no etcd.
		return
	}
	pods, members := 0, 0
	for _, p := range w.api.pods() {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodFailed {
			pods++
		}
	}
	if h := w.current(); h != nil {
		members = len(h.machine.members)
	} else {
		members = w.largest // no pod of a smaller size goes before the first member serves
	}
	// An operator that was frozen, or whose watches lag, follows an earlier size for a while.
	late := time.Since(w.edited) < time.Since(c.hampered)+time.Minute && time.Since(c.hampered) < time.Minute
	if most := 2 * max(obj.Spec.Size, members); pods > most && !late {
		w.fail("the operator makes pod %s beside %d others, for %d members", pod.Name, pods, obj.Spec.Size)
	}
}

// rejoins reports whether a pod starts etcd only on data that its volume has.
func rejoins(pod *corev1.Pod) bool {
	init := pod.Spec.InitContainers
	return claimOf(pod) != "" && slices.ContainsFunc(init[len(init)-1].Command, func(arg string) bool {
		return arg == "-require-data" || arg == "require-data"
	})
}

// promotes checks that the pod of a member notes that it holds data before the member votes.
// Otherwise the member may vote twice, should its node return with an empty disk.
func (c *checks) promotes(m *member, id uint64) {
	pod := c.w.api.pod(c.w.hostOf(m.machine.members[id].url))
	if pod == nil || pod.Annotations[startedAnnotation] != "" || !manifest.PodStateOf(pod).Guarded {
		return
	}
	c.w.fail("%s gets a vote, and its pod does not note that it holds data", c.w.nameOf(m, id))
}

// records checks that the record of a status does not go back.
func (c *checks) records(old, next *api.EtcdCluster) {
	was, is := old.Status.Record, next.Status.Record
	if was == nil || c.accepted {
		return
	}
	if is == nil || is.ClusterID == was.ClusterID && (is.RaftIndex < was.RaftIndex || is.Revision < was.Revision) {
		c.w.fail("the record in the status goes back from %+v to %+v", was, is)
	}
}

// forgotten checks the deletion of the data of a member that a quorum on disks of an earlier
// state has forgotten. It is on record, unless most members on record have agreed to its removal.
func (c *checks) forgotten(id uint64, h *history, what string) {
	obj := c.w.api.cluster()
	if obj == nil || obj.Status.Record == nil || h.gone[id] {
		return
	}
	expected, stay, named := 0, 0, false
	for _, m := range obj.Status.Record.Members {
		is := slices.ContainsFunc(h.machine.ids(), func(id uint64) bool { return etcd.FormatID(id) == m.ID })
		if is || !m.Removing {
			expected++
		}
		if is {
			stay++
		}
		named = named || m.ID == etcd.FormatID(id) && !m.Removing
	}
	if named && stay < etcd.Quorum(expected) {
		c.w.fail("the operator deletes the data of %s, which is on record, and which no quorum has removed", what)
	}
}

// sees notes that a process gets objects from the API server.
func (o *operator) sees(r *request, objects ...*stored) {
	if r.shelf.kind.resource != "pods" {
		return
	}
	if o.seen == nil {
		o.seen = map[types.UID]bool{}
	}
	for _, obj := range objects {
		o.seen[obj.obj.GetUID()] = true
	}
}
