// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/internal/checkdns"
)

const (
	namespace   = "ns"
	clusterName = "c"
	apiPlace    = "api"

	oldVersion, newVersion = "3.6.15", "3.6.16"

	startedAnnotation = "etcd.database.coreos.com/started"

	kubeletPeriod = 250 * time.Millisecond
	// mostProcessors is what a node has for a pod.
	mostProcessors = 64
	// Kubernetes notices a silent node after unheard, and begins to delete its pods after
	// toleration.
	unheard    = 40 * time.Second
	toleration = 300 * time.Second
)

// node is a node with its kubelet.
type node struct {
	w      *world
	name   string
	up     bool
	gone   bool // its object was deleted
	doomed bool // it will be recreated
	since  time.Time
	seen   time.Time // the API server's last contact
	runs   map[types.UID]*podRun
	order  []*podRun // the runs by name; nil: not sorted yet
	rounds int       // of the kubelet
	tossed bool      // Kubernetes deletes its pods
}

// podRun is a pod on its kubelet.
type podRun struct {
	w        *world
	node     *node
	pod      *corev1.Pod // as last seen
	uid      types.UID
	name     string
	ip       string
	stage    stage
	next     time.Time // the kubelet waits until then
	began    time.Time // of the stage
	answered time.Time // when a member last answered its launcher, and nobody had added it
	tries    int
	lastExit string
	restarts int32
	image    string
	proc     *member
	ready    bool
	unready  time.Time
	ended    bool
	member   string // whom the annotation names, when the container started
	// launching is true while the launcher waits in the etcd container. exitCode is the last
	// one. opened is true once the startup probe has passed.
	launching bool
	exitCode  int32
	opened    bool
	reported  *report
	round     int      // the last one of the kubelet that saw its pod
	seeding   *seeding // nil: the pod begins with no backup
}

// report is what the kubelet reports of a pod.
type report struct {
	current         int // the init container
	ip              string
	stage           stage
	ready, works    bool
	launching       bool
	opened          bool
	restarts        int32
	lastExit, image string
	tries           int
}

type stage int

const (
	inSandbox stage = iota
	inInit
	inEtcd
	ending
)

func (n *node) runOf(pod string) *podRun {
	if !n.up {
		return nil
	}
	for _, r := range n.sorted() {
		if r.name == pod && !r.ended {
			return r
		}
	}
	return nil
}

// sorted returns the runs by name. Nobody may change the slice.
func (n *node) sorted() []*podRun {
	if n.order == nil && len(n.runs) > 0 {
		n.order = slices.SortedFunc(maps.Values(n.runs), func(a, b *podRun) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid)) })
	}
	return n.order
}

func (n *node) add(r *podRun) {
	n.runs[r.uid] = r
	n.order = nil
}

func (n *node) drop(r *podRun) {
	delete(n.runs, r.uid)
	n.order = nil
}

// sync is one round of the kubelet.
func (n *node) sync() {
	if !n.up {
		return
	}
	w := n.w
	online := w.reachable(n.name, apiPlace) && !n.gone
	if online {
		n.seen, n.tossed = time.Now(), false
		n.rounds++
		for _, pod := range w.api.pods() {
			if pod.Spec.NodeName != n.name {
				continue
			}
			r := n.runs[pod.UID]
			if r == nil {
				r = &podRun{w: w, node: n, uid: pod.UID, name: pod.Name, began: time.Now()}
				r.next = time.Now().Add(w.podStart(pod.Name))
				n.add(r)
			}
			r.pod, r.round = pod, n.rounds
		}
		for _, r := range n.sorted() {
			if r.round != n.rounds {
				r.end("its pod is gone")
				n.drop(r)
			}
		}
	}
	for _, r := range n.sorted() {
		if r.pod == nil {
			continue
		}
		r.step(online)
		if online && n.runs[r.uid] != nil {
			r.report()
		}
	}
}

// end ends all of the pod on the node, with the pod's own data.
func (r *podRun) end(why string) {
	r.kill(why)
	r.ended = true
	r.release()
	if r.pod != nil && claimOf(r.pod) == "" {
		delete(r.w.disks, r.diskKey())
	}
}

func (r *podRun) kill(why string) {
	if r.proc != nil {
		r.proc.stop(why)
		r.proc = nil
	}
	r.ready, r.launching, r.opened = false, false, false
}

func (r *podRun) release() {
	if r.ip != "" {
		delete(r.w.addresses, r.ip)
		r.ip = ""
	}
}

// diskKey names the disk with the pod's data.
func (r *podRun) diskKey() string { return r.w.diskKeyOf(r.pod) }

func (w *world) diskKeyOf(pod *corev1.Pod) string {
	if claim := claimOf(pod); claim != "" {
		if s := w.api.shelves["persistentvolumeclaims"].objects[storedKey(namespace, claim)]; s != nil {
			return "volume " + string(s.obj.GetUID())
		}
		return ""
	}
	return "pod " + string(pod.UID)
}

func (r *podRun) disk() *disk {
	key := r.diskKey()
	if r.w.disks[key] == nil {
		r.w.disks[key] = &disk{}
	}
	return r.w.disks[key]
}

func inMemory(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory
	})
}

func (r *podRun) step(online bool) {
	now, w := time.Now(), r.w
	if r.pod.Status.Phase == corev1.PodFailed && !r.ended {
		r.end("evicted")
	}
	if r.pod.DeletionTimestamp != nil {
		if !r.ended {
			r.kill("its pod is being deleted")
			if r.stage != ending {
				r.stage, r.next = ending, now.Add(w.life.between(500*time.Millisecond, 2*time.Second, "end", r.name))
				return
			}
			if now.Before(r.next) {
				return
			}
			r.end("its pod is being deleted")
		}
		if online {
			s := w.api.shelves["pods"]
			r.node.drop(r)
			if p := w.api.pod(r.name); p != nil && p.UID == r.uid {
				zero := int64(0)
				w.api.remove(s, storedKey(namespace, r.name), &zero)
			}
		}
		return
	}
	if r.ended || r.failsForGood(online) || now.Before(r.next) {
		return
	}
	switch r.stage {
	case inSandbox:
		if !online || r.diskKey() == "" || r.attachedElsewhere() {
			return
		}
		w.nextIP++
		r.ip = fmt.Sprintf("10.0.%d.%d", w.nextIP/250, w.nextIP%250+1)
		w.addresses[r.ip] = r
		r.enter(inInit)
	case inInit:
		container, ok, err := r.initialize()
		switch {
		case err != nil:
			r.fail(container, err.Error())
		case ok:
			r.tries, r.lastExit = 0, ""
			r.enter(inEtcd)
		}
	case inEtcd:
		r.stepEtcd()
	}
}

// attachedElsewhere reports whether another node still uses the pod's volume.
func (r *podRun) attachedElsewhere() bool {
	if claimOf(r.pod) == "" {
		return false
	}
	for _, n := range r.w.nodes {
		for _, other := range n.sorted() {
			if n.up && other != r && other.proc != nil && !other.proc.stopped && other.proc.disk == r.disk() {
				return true
			}
		}
	}
	return false
}

func (r *podRun) enter(s stage) {
	r.stage, r.began, r.next = s, time.Now(), time.Now()
	if s == inInit {
		r.member = r.pod.Annotations[startedAnnotation]
	}
}

// fail ends a container, which restarts some time later.
func (r *podRun) fail(container, why string) {
	r.tries++
	r.lastExit, r.exitCode = why, 1
	r.ready, r.launching, r.opened = false, false, false
	r.next = time.Now().Add(min(5*time.Minute, time.Second<<min(r.tries-1, 9)))
	r.began = r.next
	if r.stage == inInit {
		r.member = r.pod.Annotations[startedAnnotation]
	}
	if r.tries < 4 {
		r.w.narrate(r.name, "%s ends: %s", container, why)
	}
}

// checkDNS is the init container.
func (r *podRun) checkDNS() (bool, error) {
	w := r.w
	c := r.pod.Spec.InitContainers[len(r.pod.Spec.InitContainers)-1]
	var cfg checkdns.Config
	if len(c.Command) == 3 { // of an earlier release: it waits for the name, and looks for nothing
		return time.Since(r.began) >= 500*time.Millisecond && w.api.shelves["services"].objects[storedKey(namespace, clusterName)] != nil, nil
	}
	if c.Command[0] == "/bin/sh" {
		cfg.Name = c.Command[4]
		if len(c.Command) > 7 {
			cfg.RequireData = c.Command[7] == "require-data"
			cfg.Started = strings.TrimPrefix(c.Command[7], "require-data")
		}
		cfg.DataDir, cfg.Timeout = c.Command[6], 2*time.Minute
		cfg.Member = r.member
	} else {
		var err error
		if cfg, err = r.parseWait(c, c.Command[2:]); err != nil {
			return false, err
		}
	}
	ok, err := r.await(cfg)
	if err != nil || !ok || time.Since(r.began) < 500*time.Millisecond || w.api.shelves["services"].objects[storedKey(namespace, clusterName)] == nil {
		return false, err
	}
	r.disk().started = r.disk().started || cfg.Started != ""
	return true, nil
}

// launcher is the command of the launcher in an etcd container; nil: none.
func launcher(c corev1.Container) []string {
	if i := slices.Index(c.Command, "--"); i > 0 {
		return c.Command[2:i]
	}
	return nil
}

// launch is the launcher in the etcd container. It reports whether it has become etcd.
func (r *podRun) launch(c corev1.Container) bool {
	cfg, err := r.parseWait(c, launcher(c))
	ok := false
	if err == nil {
		ok, err = r.await(cfg)
	}
	if err != nil {
		r.fail("the launcher", err.Error())
		if errors.Is(err, errGaveUp) {
			r.exitCode = checkdns.ExitNotStarted
		}
		return false
	}
	if ok {
		r.launching = false
		r.disk().started = r.disk().started || cfg.Started != ""
	}
	return ok
}

func (r *podRun) parseWait(c corev1.Container, args []string) (checkdns.Config, error) {
	return checkdns.Parse(args, func(key string) string {
		for _, e := range c.Env {
			if e.Name == key && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil && strings.Contains(e.ValueFrom.FieldRef.FieldPath, startedAnnotation) {
				return r.member
			}
		}
		return ""
	}, io.Discard)
}

var errGaveUp = errors.New("gave up")

// await reports whether etcd may start.
func (r *podRun) await(cfg checkdns.Config) (bool, error) {
	d := r.disk()
	switch {
	case cfg.DataDir == "", d.hasData():
	case cfg.Member != "":
		return false, fmt.Errorf("member %s has served from this pod before, and it holds no data of it now", cfg.Member)
	case cfg.RequireData:
		return false, errors.New("the volume holds no data of etcd")
	case cfg.Started != "" && d.started:
		return false, errors.New("etcd was started in this pod before, and it holds no data of it now")
	}
	if time.Since(r.began) > cfg.Timeout && time.Since(r.answered) > cfg.Timeout && cfg.Timeout > 0 {
		return false, errGaveUp
	}
	if !d.hasData() && slices.ContainsFunc(cfg.Reach, func(url string) bool {
		p := r.w.memberAt(url)
		return p == nil || !r.w.reachable(r.node.name, p.run.node.name) || !r.w.reachable(p.run.node.name, r.node.name)
	}) {
		return false, nil
	}
	if cfg.InitialCluster != nil && !d.hasData() {
		return r.membershipIs(cfg)
	}
	return true, nil
}

// membershipIs reports whether the first member that answers has the expected membership, as
// askPeers of package checkdns does.
func (r *podRun) membershipIs(cfg checkdns.Config) (bool, error) {
	for _, url := range slices.Sorted(slices.Values(cfg.Peers)) {
		p := r.w.memberAt(url)
		if p == nil || !r.w.reachable(r.node.name, p.run.node.name) || len(p.machine.members) == 0 {
			continue
		}
		var urls []string
		added := false
		for _, info := range p.machine.members {
			urls = append(urls, info.url)
			own := slices.Contains(cfg.InitialCluster, info.url) && !slices.Contains(cfg.Peers, info.url)
			added = added || own
			if own && info.name != "" {
				return false, errors.New("the other members know that this member has started before, and it holds no data now")
			}
		}
		slices.Sort(urls)
		if !added {
			r.answered = time.Now()
		}
		return slices.Equal(urls, cfg.InitialCluster), nil
	}
	return false, nil
}

func (r *podRun) stepEtcd() {
	w, c := r.w, r.pod.Spec.Containers[0]
	now := time.Now()
	if r.proc != nil && r.proc.stopped {
		why := r.proc.why
		r.proc = nil
		r.fail("etcd", why)
		return
	}
	if (r.proc != nil || r.launching) && r.image != c.Image {
		r.exitCode = 0
		if r.launching {
			r.exitCode = checkdns.ExitNotStarted
		}
		r.kill("its image is changed")
		r.tries, r.lastExit = 0, "its image is changed"
		r.next = now.Add(w.life.between(500*time.Millisecond, 3*time.Second, "image", r.name))
		return
	}
	if r.proc == nil {
		if !r.launching {
			if r.image != "" {
				r.restarts++
			}
			r.image, r.launching = c.Image, launcher(c) != nil
			r.began, r.member = now, r.pod.Annotations[startedAnnotation]
		}
		if r.launching && !r.launch(c) {
			return
		}
		if launcher(c) != nil {
			w.checks.begins(r)
		}
		m, err := w.startMember(r, r.disk(), parseFlags(c.Command), w.versionOf(c.Image))
		if err != nil {
			r.fail("etcd", err.Error())
			return
		}
		if m.stopped {
			r.fail("etcd", m.why)
			return
		}
		r.proc = m
		return
	}
	if now.Sub(r.proc.startedAt) > 10*time.Minute {
		r.tries = 0
	}
	// etcd answers the startup probe before it has a copy of the database.
	r.opened = r.opened || now.Sub(r.proc.startedAt) >= time.Second
	if r.proc.serving && r.proc.confirms() {
		r.ready, r.unready = true, time.Time{}
		return
	}
	if r.unready.IsZero() {
		r.unready = now
	}
	if now.Sub(r.unready) >= 3*time.Second {
		r.ready = false
	}
}

// versionOf returns the version of etcd in an image, whatever its tag.
func (w *world) versionOf(image string) string {
	if v := versionOf(image); v != newVersion || !w.lies {
		return v
	}
	return oldVersion
}

func versionOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":v")
	return tag
}

// report writes the pod's status if it has changed.
func (r *podRun) report() {
	w := r.w
	pod := w.api.pod(r.name)
	if pod == nil || pod.UID != r.uid || pod.Status.Phase == corev1.PodFailed || r.ended || r.stage == ending {
		return
	}
	what := report{r.current(), r.ip, r.stage, r.ready, r.proc != nil, r.launching, r.opened, r.restarts, r.lastExit, r.image, r.tries}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	if r.reported != nil && what == *r.reported && ready == r.ready {
		return
	}
	r.reported = &what
	w.api.edit("pods", r.name, func(o metav1.Object) { r.fill(&o.(*corev1.Pod).Status) })
}

func (r *podRun) fill(st *corev1.PodStatus) {
	st.PodIP = r.ip
	st.HostIP = "192.168.0.1"
	st.Phase = corev1.PodPending
	if r.stage == inEtcd {
		st.Phase = corev1.PodRunning
	}
	setCondition(st, corev1.PodReady, r.ready)
	setCondition(st, corev1.PodInitialized, r.stage == inEtcd)
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(r.began.Truncate(time.Second))}}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0, Reason: "Completed"}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: r.exitCode, Reason: "Error", Message: r.lastExit}}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	st.InitContainerStatuses = nil
	for i, c := range r.pod.Spec.InitContainers {
		s := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
		switch current := r.current(); {
		case r.stage == inSandbox || r.stage == inInit && i > current:
			s.State = waiting("PodInitializing")
		case r.stage == inEtcd || i < current:
			s.State = done
		case time.Now().Before(r.next):
			s.State, s.LastTerminationState = waiting("CrashLoopBackOff"), failed
		default:
			s.State = running
		}
		st.InitContainerStatuses = append(st.InitContainerStatuses, s)
	}
	s := corev1.ContainerStatus{Name: r.pod.Spec.Containers[0].Name, Image: r.image, RestartCount: r.restarts, Ready: r.ready, Started: new(r.opened)}
	if r.image != "" { // the container was created
		s.ContainerID = fmt.Sprintf("containerd://%s-%d", r.pod.UID, r.restarts)
	}
	switch {
	case r.stage != inEtcd:
		s.State = waiting("PodInitializing")
	case r.proc != nil || r.launching:
		s.State = running
	case r.tries > 1:
		s.State = waiting("CrashLoopBackOff")
	case r.lastExit != "":
		s.State = failed
	default:
		s.State = waiting("ContainerCreating")
	}
	if r.image != "" && r.lastExit != "" {
		s.LastTerminationState = failed
	} else if r.restarts > 0 {
		s.LastTerminationState = done
	}
	st.ContainerStatuses = []corev1.ContainerStatus{s}
}

func setCondition(st *corev1.PodStatus, t corev1.PodConditionType, is bool) {
	status := corev1.ConditionFalse
	if is {
		status = corev1.ConditionTrue
	}
	for i := range st.Conditions {
		if c := &st.Conditions[i]; c.Type == t {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(time.Now().Truncate(time.Second))
			}
			return
		}
	}
	st.Conditions = append(st.Conditions, corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))})
}

// powerOff takes a node down. Its memory is lost.
func (n *node) powerOff() {
	n.up, n.since = false, time.Now()
	for _, r := range n.sorted() {
		r.kill("the power is off")
		r.release()
		if r.image != "" {
			r.restarts++ // of containers that the kubelet knew before
		}
		r.stage, r.tries, r.lastExit = inSandbox, 0, ""
		if r.pod != nil && inMemory(r.pod) {
			if d := r.w.disks[r.diskKey()]; d != nil {
				r.w.wiped = r.w.wiped || d.hasData()
				r.w.disks[r.diskKey()] = &disk{started: d.started}
			}
		}
	}
}

// wipe empties the local disk of a node without power.
func (n *node) wipe() {
	if n.up {
		return
	}
	for _, r := range n.sorted() {
		if r.pod != nil && (claimOf(r.pod) == "" || n.w.localVolumes()) {
			n.w.wiped = n.w.wiped || n.w.disks[r.diskKey()].hasData()
			delete(n.w.disks, r.diskKey())
		}
		r.seeding = nil
	}
}

func (n *node) powerOn() {
	if n.gone {
		return
	}
	n.up, n.since = true, time.Now()
	for _, r := range n.sorted() {
		r.next = time.Now().Add(n.w.life.between(500*time.Millisecond, 5*time.Second, "reboot", r.name, n.w.nth("reboot", r.name)))
	}
}

// killMembers ends the processes of etcd on a node.
func (n *node) killMembers() {
	for _, r := range n.sorted() {
		if r.proc != nil {
			r.proc.stop("killed")
		}
	}
}

// evict ends the pods on a node for good, and returns their names.
func (n *node) evict() []string {
	var evicted []string
	for _, r := range n.sorted() {
		if r.pod != nil && r.pod.DeletionTimestamp == nil {
			r.end("evicted")
			n.w.api.edit("pods", r.name, func(o metav1.Object) {
				p := o.(*corev1.Pod)
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
			})
			evicted = append(evicted, r.name)
		}
	}
	return evicted
}

// controlNodes is Kubernetes' node controller and scheduler.
func (w *world) controlNodes() {
	for _, n := range w.nodes {
		silent := time.Since(n.seen)
		if n.up && w.reachable(n.name, apiPlace) && !n.gone || silent < unheard {
			continue
		}
		for _, pod := range w.api.pods() {
			if pod.Spec.NodeName != n.name {
				continue
			}
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue }) {
				w.api.edit("pods", pod.Name, func(o metav1.Object) { setCondition(&o.(*corev1.Pod).Status, corev1.PodReady, false) })
			}
			key := storedKey(namespace, pod.Name)
			if n.gone {
				zero := int64(0)
				w.api.remove(w.api.shelves["pods"], key, &zero)
			} else if silent > unheard+toleration && pod.DeletionTimestamp == nil {
				w.api.remove(w.api.shelves["pods"], key, nil)
			}
		}
	}
	for _, pod := range w.api.pods() {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && time.Since(pod.CreationTimestamp.Time) >= 200*time.Millisecond {
			w.schedule(pod)
		}
	}
}

func (w *world) schedule(pod *corev1.Pod) {
	load := map[string]int{}
	for _, p := range w.api.pods() {
		if p.Status.Phase != corev1.PodFailed {
			load[p.Spec.NodeName]++
		}
	}
	home := ""
	if claim := claimOf(pod); claim != "" {
		s := w.api.shelves["persistentvolumeclaims"].objects[storedKey(namespace, claim)]
		if s == nil {
			w.unschedulable(pod, fmt.Sprintf("persistentvolumeclaim %q not found", claim))
			return
		}
		home = s.obj.GetAnnotations()["node"]
	}
	if pod.Spec.Containers[0].Resources.Requests.Cpu().Value() > mostProcessors {
		w.unschedulable(pod, fmt.Sprintf("0/%d nodes are available: %d Insufficient cpu", len(w.nodes), len(w.nodes)))
		return
	}
	var best *node
	crowded := 0
	for _, n := range w.nodes {
		if keepsApart(pod) && load[n.name] > 0 && !n.gone && time.Since(n.seen) < unheard {
			crowded++
			continue
		}
		if n.gone || time.Since(n.seen) >= unheard || w.localVolumes() && home != "" && n.name != home {
			continue
		}
		if best == nil || load[n.name] < load[best.name] {
			best = n
		}
	}
	if best == nil {
		why := fmt.Sprintf("0/%d nodes are available", len(w.nodes))
		if crowded > 0 {
			why += fmt.Sprintf(": %d node(s) didn't match pod anti-affinity rules", crowded)
		}
		if home != "" {
			why += ": node(s) didn't match PersistentVolume's node affinity"
		}
		w.unschedulable(pod, why)
		return
	}
	w.api.edit("pods", pod.Name, func(o metav1.Object) {
		p := o.(*corev1.Pod)
		p.Spec.NodeName = best.name
		setCondition(&p.Status, corev1.PodScheduled, true)
	})
	if claim := claimOf(pod); claim != "" && w.localVolumes() && home == "" {
		w.api.edit("persistentvolumeclaims", claim, func(o metav1.Object) {
			a := maps.Clone(o.GetAnnotations())
			if a == nil {
				a = map[string]string{}
			}
			a["node"] = best.name
			o.SetAnnotations(a)
		})
	}
}

// keepsApart reports whether the pod must not share a node with another of its cluster.
func keepsApart(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

func (w *world) unschedulable(pod *corev1.Pod, why string) {
	if len(pod.Status.Conditions) > 0 && pod.Status.Conditions[0].Message == why {
		return
	}
	w.api.edit("pods", pod.Name, func(o metav1.Object) {
		o.(*corev1.Pod).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: why}}
	})
}

// loseVolume deletes the data of a deleted claim.
func (w *world) loseVolume(uid string) { delete(w.disks, "volume "+uid) }

// reachable reports whether messages from one place arrive at another.
func (w *world) reachable(from, to string) bool { return from == to || w.cuts[pair(from, to)] == 0 }

func pair(from, to string) string { return from + ">" + to }

// cut removes a link, and heal restores it.
func (w *world) cut(from, to string) { w.cuts[pair(from, to)]++ }

func (w *world) heal(from, to string) {
	if w.cuts[pair(from, to)]--; w.cuts[pair(from, to)] <= 0 {
		delete(w.cuts, pair(from, to))
		w.linked[pair(from, to)] = time.Now()
	}
}
