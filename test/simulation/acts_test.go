// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// The checks of this file demand care before acts that nothing takes back: the operator names
// the object by its UID, and asks the API server itself just before.

const (
	// recent bounds the age of an answer on which an act may rest.
	recent = 30 * time.Second
	// mostSame bounds how often one process begins the same write in a minute, with the repeats
	// of client-go. mostFutile bounds it for a write that never succeeds, or that somebody undoes.
	mostSame   = 30
	mostFutile = 6
	// mostBare is for how many seconds the pod of a member that serves may not note it.
	mostBare = 60
	// mostLoose is for how many seconds the budget may allow more evictions than the quorum. The
	// operator may notice a stopped member after ten seconds, and waits five for its restart.
	mostLoose = 20
)

// acts are what the checks remember of the operator's requests.
type acts struct {
	same   map[string]int // writes in this minute
	futile bool           // the operator has had the time to notice that a write is futile
	bare   map[string]int // seconds in which a member served, and its pod did not note it
	loose  int            // seconds in which the budget allowed too many evictions
}

// asks notes that a process gets an object by its name, or learns that there is none.
func (o *operator) asks(r *request) {
	if o.asked == nil {
		o.asked = map[string]time.Time{}
	}
	o.asked[r.String()] = time.Now()
}

func (o *operator) hasAsked(what string) bool {
	at, is := o.asked[what]
	return is && time.Since(at) < recent
}

// isOurs reports whether a process is one of the operator.
func (c *checks) isOurs(o *operator) bool { return o != nil && o.kin == &c.w.operators }

// repeats counts a write to an object. A process knows nothing of the attempts of another.
func (c *checks) repeats(o *operator, r *request) {
	if !slices.Contains([]string{"pods", "services", "persistentvolumeclaims", "poddisruptionbudgets"}, r.shelf.kind.resource) {
		return
	}
	if c.acts.same == nil {
		c.acts.same = map[string]int{}
	}
	what := o.name + " " + r.String()
	c.acts.same[what]++
	n := c.acts.same[what]
	// Each change of the membership changes the budget, in a fight too.
	futile := c.acts.futile && r.shelf.kind.resource != "poddisruptionbudgets"
	if n > mostSame || futile && n > mostFutile {
		c.w.fail("%s for the %dth time in a minute", what, n)
	}
}

// precise checks that a deletion names the UID.
func (c *checks) precise(o *operator, r *request, only *metav1.Preconditions) {
	if c.isOurs(o) && slices.Contains([]string{"pods", "persistentvolumeclaims"}, r.shelf.kind.resource) && (only == nil || only.UID == nil) {
		c.w.fail("%s does not name the UID: another object may have the name by now", r)
	}
}

// patches checks that a change of a pod names the UID.
func (c *checks) patches(o *operator, r *request) {
	if !c.isOurs(o) || r.shelf.kind.resource != "pods" {
		return
	}
	var patch struct{ Metadata struct{ UID types.UID } }
	must(json.Unmarshal(r.body, &patch))
	if patch.Metadata.UID == "" {
		c.w.fail("%s does not name the UID: another pod may have the name by now", r)
	}
}

// gives checks the deletion of a pod that is of use: a first member that may serve by now, or a
// voter that works.
func (c *checks) gives(o *operator, pod *corev1.Pod) {
	obj := c.w.api.cluster()
	if !c.isOurs(o) || obj == nil {
		return
	}
	if obj.Status.Phase == api.ClusterPhaseCreating && !o.hasAsked("GET etcdclusters/"+clusterName) {
		c.w.fail("the operator deletes pod %s of a bootstrap, and has not asked whether that still runs", pod.Name)
	}
	id, h := c.memberOf(c.w.disks[c.w.diskKeyOf(pod)])
	if h == nil || !slices.Contains(h.machine.voters(), id) || c.accepted {
		return
	}
	m := c.w.memberAt(h.machine.members[id].url)
	if m != nil && m.id == id && m.commits() && m.run.uid == pod.UID && pod.DeletionTimestamp == nil && !o.hasAsked("POST pods/"+pod.Name+" (dry run)") {
		c.w.fail("the operator deletes pod %s, which works, and has not asked whether the API server accepts another one", pod.Name)
	}
}

// leads checks that the operator restarts or removes no leader while another voter can lead.
func (c *checks) leads(o *operator, h *history, id uint64, act string) {
	m := c.w.memberAt(h.machine.members[id].url)
	voters := h.machine.voters()
	if !c.isOurs(o) || m == nil || m.id != id || !m.leads() || !m.commits() || len(voters) < 3 {
		return
	}
	if pod := c.w.api.pod(m.run.name); pod == nil || pod.UID != m.run.uid || !manifest.PodStateOf(pod).Running {
		return // Kubernetes does not know yet that it runs again
	}
	for _, way := range []string{pair(o.place, m.run.node.name), pair(m.run.node.name, o.place)} {
		if c.w.cuts[way] > 0 || time.Since(c.w.linked[way]) < blindFor {
			return // the operator can't ask it to hand over, or its client has not connected again
		}
	}
	for _, v := range voters {
		if !c.sick[v].IsZero() || c.conduct.stopped(o, v, c.w.memberAt(h.machine.members[v].url)) {
			return
		}
	}
	if time.Since(m.ledSince) > blindFor {
		c.w.fail("%s takes %s, which leads, and another member can lead", act, c.w.nameOf(m, id))
	}
}

// budgeted checks that the budget leaves a quorum of the voters, whichever ready pods an eviction
// chooses.
func (c *checks) budgeted(h *history) {
	w, obj := c.w, c.w.api.cluster()
	s := w.api.shelves["poddisruptionbudgets"]
	before := c.acts.loose
	c.acts.loose = 0
	if obj == nil || obj.Spec.Paused || len(s.objects) != 1 || obj.Status.Condition(api.ClusterConditionAvailable).Status != corev1.ConditionTrue || time.Since(c.hampered) < disagree {
		return
	}
	least := s.objects[s.keys()[0]].obj.(*policyv1.PodDisruptionBudget).Spec.MinAvailable.IntValue()
	ready, voting := 0, 0
	for _, p := range w.api.pods() {
		// Kubernetes counts no pod that is being deleted (pkg/controller/disruption).
		if p.Labels["etcd_cluster"] == clusterName && p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
			ready++
		}
	}
	for _, id := range h.machine.voters() {
		if m := w.memberAt(h.machine.members[id].url); m != nil && m.id == id && m.commits() {
			voting++
		}
	}
	quorum := etcd.Quorum(len(h.machine.voters()))
	if allowed := ready - least; voting < quorum || allowed <= 0 || voting-allowed >= quorum {
		return
	}
	if c.acts.loose = before + 1; c.acts.loose > mostLoose {
		w.fail("for %d seconds, the budget of %d lets evictions take the quorum: %d pods are ready, and %d of %d voters work", mostLoose, least, ready, voting, len(h.machine.voters()))
	}
}

// parts checks what precedes the removal of a voter: the record marks it. If its pod is gone, the
// operator has asked for the pod and the volume.
func (c *checks) parts(o *operator, m *member, id uint64) {
	w, obj, h := c.w, c.w.api.cluster(), c.w.histories[m.clusterID]
	if obj == nil || h == nil || !slices.Contains(h.machine.voters(), id) {
		return
	}
	name := w.hostOf(h.machine.members[id].url)
	// A member also leaves because the EtcdCluster is being deleted before the commit of an import.
	if w.api.pod(name) == nil && !w.imports.isFormer(id) && obj.DeletionTimestamp == nil && len(h.machine.members) <= obj.Spec.Size && time.Since(c.sick[id]) < 9*time.Minute {
		if !o.hasAsked("GET pods/" + name) {
			w.fail("the operator removes %s for the loss of its pod, and has not asked for the pod", name)
		}
		if obj.Spec.Persistent() && !o.hasAsked("GET persistentvolumeclaims/"+name) {
			w.fail("the operator removes %s for the loss of its pod, and has not asked for its volume", name)
		}
	}
	if obj.Status.Record == nil || c.accepted {
		return
	}
	expected, stay, unmarked := 0, 0, false
	for _, r := range obj.Status.Record.Members {
		is := slices.ContainsFunc(h.machine.ids(), func(id uint64) bool { return etcd.FormatID(id) == r.ID })
		if is || !r.Removing {
			expected++
		}
		leaves := r.ID == etcd.FormatID(id)
		if is && !leaves {
			stay++
		}
		unmarked = unmarked || leaves && !r.Removing
	}
	if unmarked && (stay < etcd.Quorum(expected) || time.Since(c.hampered) > time.Minute) {
		w.fail("the operator removes %s, and the record does not mark it", name)
	}
}

// noted checks that the pods of members that have served for some time note it.
func (c *checks) noted(h *history) {
	w, obj := c.w, c.w.api.cluster()
	before := c.acts.bare
	c.acts.bare = map[string]int{}
	if obj == nil || obj.Spec.Paused || obj.Status.Condition(api.ClusterConditionAvailable).Status != corev1.ConditionTrue || w.api.refusal != "" || time.Since(c.hampered) < disagree {
		return
	}
	for id, info := range h.machine.members {
		m := w.memberAt(info.url)
		if m == nil || m.id != id || !m.serving {
			continue
		}
		pod := w.api.pod(m.run.name)
		if pod == nil || pod.DeletionTimestamp != nil || pod.Annotations[startedAnnotation] != "" || !manifest.PodStateOf(pod).Guarded {
			continue
		}
		c.acts.bare[pod.Name] = before[pod.Name] + 1
		if c.acts.bare[pod.Name] > mostBare {
			w.fail("%s has served for %d seconds, and its pod does not note it", pod.Name, mostBare)
		}
	}
}

// begins checks the start of etcd in a pod that noted, when its container began, that its
// member has served.
func (c *checks) begins(r *podRun) {
	if r.member != "" && !r.disk().hasData() {
		c.w.fail("etcd starts without data in pod %s, which notes that its member has served", r.name)
	}
}
