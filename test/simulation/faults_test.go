// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/raft/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// The faults begin after the cluster has had some time to form, and end.
const (
	stormBegins = 5 * time.Second
	stormLasts  = 6 * time.Minute
)

// fault is a fault with a start and a duration.
type fault struct {
	id    string
	at    time.Duration
	begin func()
	lasts time.Duration
	end   func()
	// when is true at the moment that the fault waits for, from its time on; nil: it waits for
	// none.
	when func() bool
}

// weather is the faults of calls during some time.
type weather struct {
	from, to time.Duration
	kinds    []string
	p        float64
	etcd     bool
	only     string // a part of the calls' keys; empty: all calls
}

// etcdCall reports whether a call is one to a member.
func etcdCall(c *call) bool { return strings.HasPrefix(c.key, c.actor.name+" etcd ") }

// callFault is the fault of the n-th call of a kind.
func (w *world) callFault(c *call, n int) string {
	at := w.elapsed()
	for i, we := range w.skies {
		if at < we.from || at > we.to || we.etcd != etcdCall(c) || !strings.Contains(c.key, we.only) || !w.life.chance(we.p, "call", i, c.key, n) {
			continue
		}
		kind := we.kinds[w.life.number("kind", i, c.key, n)%uint64(len(we.kinds))]
		if we.etcd && slices.Contains([]string{"500", "429", "409", "touched", "done 500"}, kind) {
			kind = "lost"
		}
		if strings.Contains(c.key, " WATCH ") && strings.HasPrefix(kind, "done") {
			kind = "lost"
		}
		if kind == "409" && !strings.Contains(c.key, " PUT ") {
			continue
		}
		id := fmt.Sprintf("%s #%d: %s", c.key, n, kind)
		if w.life.without[id] {
			continue
		}
		w.happened(id)
		w.narrate("fault", "%s", id)
		w.impaired()
		return kind
	}
	return ""
}

// happened notes a fault that took effect.
func (w *world) happened(id string) {
	w.struck++
	if !w.told[id] {
		w.told[id] = true
		w.faults = append(w.faults, id)
	}
}

// draws is what the current storm draws its faults from.
func (w *world) draws() life {
	l := w.life
	if w.storm > 0 {
		l.seed = l.number("storm", w.storm)
	}
	return l
}

// plan chooses the faults of a storm.
func (w *world) plan() {
	l, base := w.draws(), w.elapsed()
	if w.backups != nil {
		w.backups.plan()
	}
	n := 1 + int(l.number("faults")%10)
	if w.aim != nil {
		n %= 4 // others would hide what it shows
	} else if w.many = l.storms > 0 || l.chance(0.5, "many faults"); w.many {
		n *= 2 + int(l.number("times")%12)
	}
	if w.imports != nil {
		w.imports.plan()
		if !w.many {
			n %= 5
		}
	}
	for i := range n {
		w.expect(w.makeFault(i))
	}
	if w.storm == 0 {
		for _, f := range w.aimed() {
			w.expect(f)
		}
	}
	for i := range int(l.number("skies") % 3) {
		if w.aim != nil {
			break
		}
		from := stormBegins - 4*time.Second + l.between(0, stormLasts-time.Minute, "sky", i)
		if l.chance(0.2, "sky from the start", i) {
			from = 0
		}
		we := weather{from: base + from, to: base + from + l.between(10*time.Second, 2*time.Minute, "sky lasts", i), p: []float64{0.02, 0.1, 0.3}[l.number("sky p", i)%3]}
		we.etcd = l.chance(0.25, "sky etcd", i)
		all := []string{"lost", "done", "500", "done 500", "429", "409", "touched", "crash before", "crash after"}
		if we.p > 0.1 {
			all = all[:7]
		}
		if l.chance(0.5, "sky all", i) {
			we.kinds = all
		} else {
			we.kinds = []string{all[l.number("sky kind", i)%uint64(len(all))]}
		}
		w.skies = append(w.skies, we)
	}
}

// expect makes a fault happen.
func (w *world) expect(f *fault) {
	if f == nil || w.life.without[f.id] {
		return
	}
	w.after(f.at, func() { w.strike(f) })
}

// strike lets a fault happen, at its moment.
func (w *world) strike(f *fault) {
	if f.when != nil && !f.when() {
		if w.elapsed() < stormBegins+stormLasts {
			w.after(50*time.Millisecond, func() { w.strike(f) })
		}
		return
	}
	w.happened(f.id)
	w.narrate("fault", "%s", f.id)
	f.begin()
	w.disturbed = time.Now()
	if f.end != nil {
		w.lasting++
		w.after(f.lasts, func() {
			w.narrate("fault", "over: %s", f.id)
			f.end()
			w.lasting--
			w.disturbed = time.Now()
		})
	}
}

// makeFault makes the i-th fault of a life.
func (w *world) makeFault(i int) *fault {
	l, base := w.draws(), w.elapsed()
	// Where there are many faults, few destroy data: after the loss of a quorum little can
	// be seen.
	destroys := func(p float64, what string) bool {
		if w.many {
			p /= 10
		}
		if l.storms > 0 {
			p /= 4
		}
		if w.taken() || w.imports != nil {
			return false
		}
		return l.chance(p, "fault", i, what)
	}
	pick := func(what string, n int) int { return int(l.number("fault", i, what) % uint64(n)) }
	f := &fault{at: stormBegins + l.between(0, stormLasts, "fault", i, "at"), lasts: l.between(2*time.Second, 90*time.Second, "fault", i, "lasts")}
	if l.chance(0.2, "fault", i, "long") {
		f.lasts = l.between(time.Minute, 12*time.Minute, "fault", i, "lasts long")
	}
	n := w.nodes[pick("node", len(w.nodes))]
	m := w.nodes[pick("node 2", len(w.nodes))]
	name := func(format string, args ...any) {
		f.id = fmt.Sprintf("%d: ", i+100000*w.storm) + fmt.Sprintf(format, args...) + fmt.Sprintf(" at %s", (base+f.at).Round(time.Millisecond))
		if f.end != nil {
			f.id += fmt.Sprintf(" for %s", f.lasts.Round(time.Millisecond))
		}
	}
	op := func() *operator {
		w.impaired()
		return w.operator()
	}
	which := "operator"
	if w.pair && pick("which", 2) == 1 {
		which = "operator-2"
	}
	edit := fmt.Sprintf("%dm", 100+pick("edit", 3)*50)
	switch pick("kind", 32) {
	case 0, 1:
		f.begin = n.killMembers
		name("etcd is killed on %s", n.name)
	case 2, 3, 4:
		wipe := destroys(0.4, "wipe")
		f.begin = func() { n.powerOff() }
		f.end = func() {
			if wipe {
				n.wipe()
			}
			n.powerOn()
		}
		name("%s loses power (wiped: %t)", n.name, wipe)
	case 5, 6:
		mask := pick("mask", 1<<len(w.nodes))
		wiped := destroys(0.7, "wipe")
		f.begin = func() {
			for _, n := range w.nodes {
				n.powerOff()
			}
		}
		f.lasts = min(f.lasts, time.Minute)
		f.end = func() {
			for j, n := range w.nodes {
				w.after(l.between(0, 40*time.Second, "fault", i, "return", j), func() {
					if wiped && mask&(1<<j) != 0 {
						w.narrate("fault", "%s comes back with an empty disk", n.name)
						n.wipe()
					}
					if !n.up {
						n.powerOn()
					}
				})
			}
		}
		name("all nodes lose power (wiped: %t %b)", wiped, mask)
	case 7:
		f.begin = func() {
			if !n.up || !w.reachable(n.name, apiPlace) {
				return // its kubelet evicts
			}
			n.evict()
		}
		name("the pods on %s are evicted", n.name)
	case 8, 9:
		var hung []*disk
		f.begin = func() {
			for _, r := range n.sorted() {
				if r.pod != nil && r.proc != nil {
					d := r.disk()
					d.hung = true
					hung = append(hung, d)
				}
			}
		}
		f.end = func() {
			for _, d := range hung {
				d.hung = false
			}
		}
		name("the disk of %s hangs", n.name)
	case 10:
		f.begin = func() { w.cut(n.name, apiPlace) }
		f.end = func() { w.heal(n.name, apiPlace) }
		name("%s is cut off from the API server", n.name)
	case 11, 12:
		if n == m {
			return nil
		}
		both := l.chance(0.5, "fault", i, "both")
		f.begin = func() {
			w.cut(n.name, m.name)
			if both {
				w.cut(m.name, n.name)
			}
		}
		f.end = func() {
			w.heal(n.name, m.name)
			if both {
				w.heal(m.name, n.name)
			}
		}
		name("%s is cut off from %s (both ways: %t)", n.name, m.name, both)
	case 13:
		if l.chance(0.4, "fault", i, "longer") {
			f.lasts = l.between(10*time.Minute, 16*time.Minute, "fault", i, "lasts longer")
		}
		f.begin = func() { op(); w.cut(which, n.name) }
		f.end = func() { op(); w.heal(which, n.name) }
		name("the %s is cut off from %s", which, n.name)
	case 14:
		f.begin = func() { op(); w.cut(which, apiPlace) }
		f.end = func() { op(); w.heal(which, apiPlace) }
		name("the %s is cut off from the API server", which)
	case 15:
		f.begin = func() {
			if o := op(); o != nil {
				o.crash()
			}
		}
		name("the operator crashes")
	case 16:
		var o *operator
		f.begin = func() {
			if o = op(); o != nil {
				o.frozen = true
			}
		}
		f.end = func() {
			op()
			if o != nil {
				o.frozen = false
			}
		}
		name("the operator freezes")
	case 17:
		resource := []string{"pods", "services", "persistentvolumeclaims", "etcdclusters"}[pick("resource", 4)]
		by := l.between(time.Second, 15*time.Second, "fault", i, "lag")
		f.begin = func() { op(); w.lags[resource] += by }
		f.end = func() { op(); w.lags[resource] -= by }
		name("watches of %s lag by %s", resource, by)
	case 18:
		resource := []string{"pods", "services", "persistentvolumeclaims", "etcdclusters"}[pick("resource", 4)]
		forgets := l.chance(0.5, "fault", i, "forgets")
		f.begin = func() {
			op()
			for _, wa := range slices.Clone(w.api.watchers) {
				if wa.r.shelf.kind.resource == resource {
					w.api.breakOff(wa)
				}
			}
			if forgets {
				w.api.forget(resource)
			}
			w.old[resource] += 1 + pick("old", 8)
		}
		f.end = func() { w.old[resource] = 0 }
		name("watches of %s break off, and lists are old (forgotten: %t)", resource, forgets)
	case 19:
		if l.chance(0.5, "fault", i, "refusal") {
			f.begin = func() { w.api.refusal = "exceeded quota: pods=0" }
			f.end = func() { w.api.refusal = "" }
			name("admission refuses pods")
		} else {
			f.begin = func() { w.api.pinned = true }
			f.end = func() { w.api.pinned = false }
			name("admission names images by digests")
		}
	case 20:
		size := []int{1, 3, 3, 5, 2, 4}[pick("size", 6)]
		f.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Size = size })
		}
		name("somebody sets the size to %d", size)
	case 21:
		if l.chance(0.5, "fault", i, "version") {
			version := newVersion
			if w.storm > 0 && l.chance(0.5, "fault", i, "back") {
				version = oldVersion
			}
			f.begin = func() {
				w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Version = version })
			}
			name("somebody sets the version to %s", version)
		} else {
			f.begin = func() {
				pods := w.api.pods()
				if len(pods) > 0 {
					pod := pods[pick("pod", len(pods))]
					w.narrate("fault", "somebody deletes pod %s", pod.Name)
					w.api.remove(w.api.shelves["pods"], storedKey(namespace, pod.Name), nil)
				}
			}
			name("somebody deletes a pod")
		}
	case 22:
		f.begin = func() {
			if pods := w.api.pods(); len(pods) > 0 {
				w.api.edit("pods", pods[pick("pod", len(pods))].Name, func(o metav1.Object) {
					labels := maps.Clone(o.GetLabels())
					delete(labels, "etcd_cluster")
					o.SetLabels(labels)
				})
			}
		}
		name("a pod loses a label")
	case 23:
		service := []string{clusterName, clusterName + "-client"}[pick("service", 2)]
		f.begin = func() {
			if s := w.api.shelves["services"]; s.objects[storedKey(namespace, service)] != nil {
				w.api.remove(s, storedKey(namespace, service), nil)
			}
		}
		name("somebody deletes Service %s", service)
	case 24:
		pause := func(is bool) func() {
			return func() {
				w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Paused = is })
			}
		}
		f.begin, f.end = pause(true), pause(false)
		name("somebody pauses the cluster")
	case 25:
		if slices.ContainsFunc(w.nodes, func(n *node) bool { return n.doomed }) {
			return nil
		}
		n.doomed = true
		f.begin = func() {
			n.powerOff()
			n.gone = true
		}
		name("%s is gone for good", n.name)
	case 26:
		f.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) { o.(*api.EtcdCluster).Spec.Repository = "mirror.example/etcd" })
		}
		name("somebody sets another repository")
	case 27, 28:
		f.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) {
				o.(*api.EtcdCluster).Spec.Pod.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(edit)}
			})
		}
		name("somebody asks for %s of a processor for each member", edit)
	case 29:
		f.begin = func() {
			w.api.edit("etcdclusters", clusterName, func(o metav1.Object) {
				o.(*api.EtcdCluster).Spec.Pod.Labels = map[string]api.LabelValue{"team": api.LabelValue(edit)}
			})
		}
		name("somebody labels members with %s", edit)
	case 30, 31:
		if !destroys(1, "go back") {
			return nil
		}
		nodes := w.nodes
		if l.chance(0.5, "fault", i, "one") {
			nodes = []*node{n}
		}
		back := l.between(5*time.Second, 4*time.Minute, "fault", i, "back")
		var old map[*disk]*raft.MemoryStorage
		w.after(max(0, f.at-back), func() { old = w.copyDisks(nodes) })
		f.begin = func() {
			for _, n := range nodes {
				n.powerOff()
			}
		}
		f.lasts = min(f.lasts, time.Minute)
		f.end = func() {
			w.rollBack(old)
			for _, n := range nodes {
				if !n.up {
					n.powerOn()
				}
			}
		}
		name("%d nodes lose power, their disks are those of %s before", len(nodes), back.Round(time.Second))
	}
	return f
}

// lag returns the delay of a watch event.
func (w *world) lag(resource string) time.Duration { return time.Millisecond + w.lags[resource] }

// stale returns the number of a kind's latest changes that a cache of the API server does not
// show.
func (w *world) stale(resource string) int { return w.old[resource] }

// podStart returns how long a pod takes to start.
func (w *world) podStart(name string) time.Duration {
	if w.life.chance(0.03, "slow pod", name) {
		return w.life.between(5*time.Second, 90*time.Second, "pod", name)
	}
	return w.life.between(300*time.Millisecond, 3*time.Second, "pod", name)
}

// localVolumes reports whether volumes belong to their nodes.
func (w *world) localVolumes() bool { return w.local }
