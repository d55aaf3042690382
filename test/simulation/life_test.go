// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand"
	mathrand2 "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// calmLasts bounds the time until the cluster is as specified after the faults, without the
// copies of a large database.
const calmLasts = 40 * time.Minute

// patience bounds the time until the cluster is as specified. An edit replaces all members one
// after the other, and each new one first receives a copy.
func (w *world) patience() time.Duration {
	members := 0
	if obj := w.api.cluster(); obj != nil {
		members = obj.Spec.Size
	}
	return calmLasts + time.Duration(members)*w.copyTakes
}

// result is a life's outcome.
type result struct {
	life      life
	failure   string
	faults    []string
	struck    int
	lines     []string
	hash      uint64
	lasted    time.Duration
	mostWrote int
	clients   []int
	ended     string
	storms    int
}

// live lives one life.
func live(t *testing.T, l life, calm bool) result {
	t.Helper()
	var r result
	sow(l.seed)
	synctest.Test(t, func(*testing.T) { r = liveInBubble(l, calm) })
	return r
}

// sow makes randomness the same for each life of a seed.
func sow(seed uint64) {
	source := mathrand2.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	rand.Reader = source                                        // raft's election timeouts
	uuid.SetRand(mathrand.New(mathrand.NewSource(int64(seed)))) // not for secrets
	utilrand.Seed(int64(seed))
	mathrand.Seed(int64(seed)) //nolint:staticcheck // what client-go draws from
}

// sowNames makes the names that the operator draws next depend on the time, and not on the
// number of passes before. After a list with several objects, Go's scheduler decides how many
// passes follow.
func (w *world) sowNames() {
	utilrand.Seed(int64(w.life.number("names", int(w.elapsed())) >> 1)) // any number will do
}

func newWorld(l life) *world {
	w := &world{
		life: l, start: time.Now(), bell: make(chan struct{}, 1), told: map[string]bool{},
		addresses: map[string]*podRun{}, hosts: map[string]string{}, disks: map[string]*disk{}, histories: map[uint64]*history{},
		cuts: map[string]int{}, linked: map[string]time.Time{}, counters: map[string]int{}, rejecting: map[[2]uint64]bool{},
		lags: map[string]time.Duration{}, old: map[string]int{},
	}
	w.checks = checks{w: w, sick: map[uint64]time.Time{}}
	w.api = newAPIServer(w)
	if l.backups {
		w.backups = newBackups(w)
	}
	w.createsCRD = l.chance(0.05, "create CRD")
	w.pair = l.chance(0.25, "pair")
	w.lies = l.storms == 0 && l.chance(0.15, "lies") // an upgrade to such a tag is the end
	if l.chance(0.15, "large") {
		w.copyTakes = l.between(30*time.Second, 8*time.Minute, "copy")
	}
	switch {
	case l.aimed:
		w.aim = &aims[l.seed%uint64(len(aims))]
	case !l.backups && !l.imports && l.storms == 0 && l.chance(0.35, "aim"):
		w.aim = &aims[l.number("which aim")%uint64(len(aims))]
	}
	return w
}

// nodesFor returns the number of nodes for a size.
func (w *world) nodesFor(size int) int {
	if w.aim != nil && w.aim.crowded {
		return max(3, size)
	}
	return max(3, size) + int(w.life.number("nodes")%2)
}

// specOf returns the spec of this life.
func (w *world) specOf() *api.EtcdCluster {
	l := w.life
	obj := &api.EtcdCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdClusterResourceKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName, UID: types.UID("00000000-0000-4000-8000-aaaaaaaaaaaa"), Generation: 1, CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second))},
	}
	obj.Spec.Size = []int{1, 3, 3, 3, 5}[l.number("size")%5]
	obj.Spec.Version = oldVersion
	obj.Spec.Pod = &api.PodPolicy{}
	switch l.number("storage") % 4 {
	case 1:
		obj.Spec.Pod.Tmpfs = !w.taken() && l.storms == 0 // the first power loss would be the end
	case 2:
		w.local = true
		fallthrough
	case 3:
		obj.Spec.Pod.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}
	}
	obj.Spec.Pod.AntiAffinity = l.chance(0.2, "apart")
	if l.chance(0.15, "busybox") {
		obj.Spec.Pod.BusyboxImage = "busybox:1.36"
	}
	if w.aim != nil {
		w.aim.prepare(w, obj)
	}
	w.recoverSpec(obj)
	return obj
}

func liveInBubble(l life, calm bool) result {
	w := newWorld(l)
	obj := w.specOf()
	w.importSpec(obj)
	w.narrate("world", "size %d, tmpfs %t, volumes %t (local %t), busybox %t, members apart %t, a copy takes %s, the tag of %s lies %t",
		obj.Spec.Size, obj.Spec.Pod.Tmpfs, obj.Spec.Persistent(), w.local, obj.Spec.Pod.BusyboxImage != "", obj.Spec.Pod.AntiAffinity, w.copyTakes, newVersion, w.lies)
	w.api.noWatchLists = l.chance(0.5, "watch lists") || w.aim != nil && w.aim.cached
	w.api.put(w.api.shelves["etcdclusters"], obj)
	w.recoverStore(obj)
	for i := range w.nodesFor(obj.Spec.Size) {
		n := &node{w: w, name: fmt.Sprintf("node-%d", i+1), up: true, seen: time.Now(), runs: map[types.UID]*podRun{}}
		w.nodes = append(w.nodes, n)
		w.every(time.Duration(i)*37*time.Millisecond, kubeletPeriod, n.sync)
	}
	w.every(100*time.Millisecond, 300*time.Millisecond, w.controlNodes)
	w.every(time.Second, time.Second, w.checks.look)
	w.every(time.Minute, time.Minute, w.checks.minute)
	w.beginBackups()
	w.startClients()
	w.startOperator("operator")
	if w.pair {
		w.after(w.life.between(0, 5*time.Second, "second"), func() { w.startOperator("operator-2") })
	}
	if w.pair || w.backups != nil {
		w.every(500*time.Millisecond, 500*time.Millisecond, w.reap)
	}
	failed := func() bool { return w.checks.failure != "" }
	var ended string
	for w.storm = range max(1, l.storms) {
		if !calm {
			w.plan()
			w.run(time.Now().Add(stormBegins+stormLasts+15*time.Second), failed)
		}
		if ended = w.settle(failed); ended != "as specified" || w.rolledBack || failed() {
			break
		}
	}
	r := result{life: l, failure: w.checks.failure, faults: w.faults, struck: w.struck, lines: w.tale.lines, hash: w.tale.hash, lasted: w.elapsed(), mostWrote: w.checks.mostWrote, ended: ended, storms: w.storm + 1}
	for _, c := range w.clients {
		r.clients = append(r.clients, c.done)
	}
	w.endBackups()
	for _, o := range w.processes() {
		if !o.ended {
			o.stop()
		}
	}
	for _, o := range w.processes() {
		<-o.done
	}
	return r
}

// settle waits until the cluster is as specified, or the status names what is in the way.
func (w *world) settle(failed func() bool) (ended string) {
	stormEnd := time.Now()
	var last time.Time
	patience := w.patience()
	w.run(stormEnd.Add(patience), func() bool { // one check a second
		if time.Since(last) < time.Second && !failed() {
			return false
		}
		last = time.Now()
		ended = w.settled(time.Since(stormEnd))
		return ended != "" || failed()
	})
	if ended == "" {
		var what string
		if obj := w.api.cluster(); obj != nil {
			what, _, _ = w.obstacle(obj)
		}
		w.fail("%s after the storm the cluster is not as specified, and status does not say why (%s): %s", patience, what, w.describe())
	}
	return ended
}

// settled returns the outcome; "": there is none yet.
func (w *world) settled(calm time.Duration) string {
	obj := w.api.cluster()
	if w.imports != nil && w.operator() != nil && w.lasting == 0 {
		if ended := w.imports.settled(obj); ended != "" {
			return ended
		}
	}
	if obj == nil || w.operator() == nil || w.aim != nil && w.lasting > 0 {
		return ""
	}
	w.reconnect(obj)
	if w.imports == nil && w.asSpecified(obj) {
		switch {
		case w.backups != nil && !w.backups.settled(calm):
		case !w.wentBack:
			return "as specified"
		case calm > 2*time.Minute:
			w.fail("the data of all members went back behind what is on record, and status does not say so")
		}
		return ""
	}
	named := named(obj)
	if what, word, soon := w.obstacle(obj); what != "" && !w.backups.hopeful(what) && calm > soon && strings.Contains(named, word) && named != "" {
		return what + ": status names it: " + named
	}
	return ""
}

// named returns the obstacle that the status names.
func named(obj *api.EtcdCluster) string {
	if available := obj.Status.Condition(api.ClusterConditionAvailable); available.Status != corev1.ConditionTrue && available.Message != "" {
		return available.Reason + ": " + available.Message + " " + obj.Status.Reason
	}
	return obj.Status.Reason
}

// asSpecified reports whether the cluster matches its spec, and clients are served.
func (w *world) asSpecified(obj *api.EtcdCluster) bool {
	st := obj.Status
	if obj.Status.Condition(api.ClusterConditionAvailable).Status != corev1.ConditionTrue || st.ReadyMembers != obj.Spec.Size || st.ObservedGeneration != obj.Generation {
		return false
	}
	for _, c := range w.clients {
		if !c.since.IsZero() || time.Since(c.last) >= 3*time.Second {
			return false
		}
	}
	pods := 0
	for _, p := range w.api.pods() {
		if p.DeletionTimestamp != nil {
			continue
		}
		pods++
		if p.Labels["etcd_cluster"] != clusterName {
			return false
		}
		image, _, _ := strings.Cut(p.Spec.Containers[0].Image, "@")
		if image != obj.Spec.EffectiveRepository()+":v"+obj.Spec.Version || w.versionOf(image) != obj.Spec.Version {
			return false
		}
		if former(p) { // the operator assumes that it matched the spec
			continue
		}
		if !follows(p, obj) ||
			p.Labels["team"] != string(obj.Spec.Pod.Labels["team"]) {
			return false
		}
	}
	h := w.current()
	return pods == obj.Spec.Size && h != nil && len(h.machine.members) == obj.Spec.Size && len(h.machine.voters()) == obj.Spec.Size
}

// obstacle returns what permanently keeps the cluster from its spec, as the model knows it;
// "": nothing. It also returns a word that the status must contain, and the time until it
// must.
func (w *world) obstacle(obj *api.EtcdCluster) (what, word string, within time.Duration) {
	nodes := 0
	for _, n := range w.nodes {
		if !n.gone {
			nodes++
		}
	}
	if w.backups != nil && w.backups.stuck() != "" {
		return w.backups.stuck(), "", 5 * time.Minute
	}
	h := w.current()
	if what, word, within := w.imports.obstacle(h, obj); what != "" {
		return what, word, within
	}
	if h == nil && !w.backups.replacing() {
		return "nobody was ever served", "", 20 * time.Minute
	}
	left := 0
	var voters []uint64
	if h != nil {
		voters = h.machine.voters()
	}
	for _, id := range voters {
		if w.keeps(id) {
			left++
		}
	}
	switch {
	case h == nil && w.forgotten():
		return "the first member lost its memory before it served", "", 10 * time.Minute
	case h == nil && w.stranded():
		return "the node of the restored volume is gone", "node affinity", 10 * time.Minute
	case h != nil && left < etcd.Quorum(len(voters)):
		word := "EtcdRestore"
		if w.local { // a volume on a node that is gone is still there for the operator
			word = ""
		}
		return "a quorum has lost its data", word, 3 * time.Minute
	case w.wiped && contradicts(obj):
		return "data was lost", "", 3 * time.Minute
	case w.taken() && contradicts(obj):
		return "an earlier release left volumes of removed members", "", 3 * time.Minute
	case obj.Spec.Pod.AntiAffinity && nodes < obj.Spec.Size:
		return "there are too few nodes", "", 10 * time.Minute
	case obj.Spec.Pod.AntiAffinity && nodes == obj.Spec.Size && obj.Spec.Size < 3:
		// An edit needs a node for one more member. Where two are left, none makes room for it.
		return "no node is left for a replacement", "can't be scheduled", 10 * time.Minute
	case w.lies && obj.Spec.Version == newVersion:
		return "the tag of the image lies", "the tag of an image is wrong", 25 * time.Minute
	case strings.Contains(obj.Status.Reason, noCommand) && strings.Contains(obj.Status.Reason, "undo"):
		return "an edit waits for a member that can not join", noCommand, 10 * time.Minute
	case w.rolledBack:
		// The remaining members may have an older membership, whose quorum has lost its data.
		return "disks went back", "", 25 * time.Minute
	}
	return "", "", 0
}

// stranded reports whether a volume is on a node that is gone.
func (w *world) stranded() bool {
	s := w.api.shelves["persistentvolumeclaims"]
	return w.localVolumes() && slices.ContainsFunc(s.keys(), func(key string) bool {
		home := s.objects[key].obj.GetAnnotations()["node"]
		return slices.ContainsFunc(w.nodes, func(n *node) bool { return n.name == home && n.gone })
	})
}

// keeps reports whether a member's data is somewhere where it can run.
func (w *world) keeps(id uint64) bool {
	h := w.current()
	if w.imports.keeps(id) {
		return true
	}
	for _, n := range w.nodes {
		for _, r := range n.sorted() {
			if n.gone || r.pod == nil || claimOf(r.pod) != "" {
				continue
			}
			if d := w.disks[r.diskKey()]; d.hasData() && d.member == id && w.histories[d.clusterID] == h {
				return true
			}
		}
	}
	s := w.api.shelves["persistentvolumeclaims"]
	for _, key := range s.keys() {
		claim := s.objects[key].obj
		d := w.disks["volume "+string(claim.GetUID())]
		if !d.hasData() || d.member != id || w.histories[d.clusterID] != h {
			continue
		}
		home := claim.GetAnnotations()["node"]
		if !w.localVolumes() || !slices.ContainsFunc(w.nodes, func(n *node) bool { return n.name == home && n.gone }) {
			return true
		}
	}
	return false
}

// describe describes the cluster.
func (w *world) describe() string {
	var b strings.Builder
	if obj := w.api.cluster(); obj != nil {
		fmt.Fprintf(&b, "spec.size %d, spec.version %s, phase %s, reason %q, ready %d, conditions", obj.Spec.Size, obj.Spec.Version, obj.Status.Phase, obj.Status.Reason, obj.Status.ReadyMembers)
		for _, c := range obj.Status.Conditions {
			fmt.Fprintf(&b, " %s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, p := range w.api.pods() {
		fmt.Fprintf(&b, "\n  pod %s on %s, %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, n := range w.nodes {
			if r := n.runs[p.UID]; r != nil {
				fmt.Fprintf(&b, ", stage %d, ready %t, last exit %q, data %t", r.stage, r.ready, r.lastExit, r.pod != nil && w.disks[r.diskKey()].hasData())
				if r.proc != nil {
					fmt.Fprintf(&b, ", member %x, leader %x, serving %t, hung %t", r.proc.id, r.proc.lead, r.proc.serving, r.proc.disk.hung)
				}
			}
		}
	}
	if h := w.current(); h != nil {
		fmt.Fprintf(&b, "\n  members %+v, last entry %d", h.machine.members, h.last)
	}
	if w.backups != nil {
		b.WriteString(w.backups.describe())
	}
	return b.String()
}
