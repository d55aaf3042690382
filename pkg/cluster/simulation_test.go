// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// model is the world as it is, where the operator sees only observations.
type model struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time
	log  []string

	spec   api.ClusterSpec
	status api.ClusterStatus
	gate   bool

	peerService, clientService bool
	budget                     int // of evictions; 0: there is none
	pods                       map[string]*modelPod
	volumes                    map[string]*modelVolume
	members                    []modelMember
	serial                     int
	index, logTarget, logCount uint64 // of raft
	snapshots                  uint64 // the users' snapshot count; 0: none
	oldEntries                 uint64 // last index that etcd before 3.6 wrote
	agreed                     etcd.Version

	restore modelRestore
	wipes   modelWipes
}

type modelPod struct {
	manifest.MemberPod
	template manifest.Template
	stuck    bool // its spec can't run
	uid      int
	created  time.Time
	atGate   bool
	started  bool // etcd was started
	running  bool
	refused  bool // etcd ends at once: the membership is not the expected one
	bad      bool // no such image
	image    string
	stage    int  // how many init containers of a restore have ended
	noted    bool // that the member has served
	wiped    time.Time
	content  string // of an emptyDir: the SHA-256 of the backup that was restored
	runs     string // version of the process
	before   string // version on record before the last change
}

type modelVolume struct {
	uid      int
	version  string // on record
	template string
	data     bool
	content  string // as of the pod
}

type modelMember struct {
	id      uint64
	name    string
	learner bool
	joined  bool
}

var goodVersions = []string{"3.5.35", "3.6.16", "3.7.3"}

func play(t *testing.T, seed uint64) {
	m := &model{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), // lives must be repeatable
		gate: seed%4 != 3, pods: map[string]*modelPod{}, volumes: map[string]*modelVolume{},
	}
	m.spec = api.ClusterSpec{Size: 1 + m.rand.IntN(5), Version: goodVersions[m.rand.IntN(2)]}
	m.spec.Pod = &api.PodPolicy{}
	if !m.gate {
		m.spec.Pod.BusyboxImage = "busybox:1.28"
	}
	if seed%3 == 1 {
		m.keepOnVolumes()
	}
	m.wipes.guarded = seed%2 == 0
	if seed%7 == 2 {
		m.snapshots = 2 * etcd.SnapshotCount
	}
	if seed%5 >= 3 {
		m.restore.source = scriptSource("r1")
	}
	defer func() {
		if t.Failed() {
			t.Logf("initial %s; the life up to here:\n%s", m.status.InitialVersion, strings.Join(m.log[max(0, len(m.log)-80):], "\n"))
		}
	}()
	for range 400 {
		m.pass()
		m.progress()
		m.checkBudget()
		m.trouble()
		if t.Failed() {
			return
		}
	}
	// The trouble is over.
	m.note("calm")
	m.restore.hidden, m.restore.unreadable = false, false
	m.wipes.calm(m)
	m.spec.Version, m.spec.Paused = m.reachableVersion(), false
	if m.spec.Pod.ServiceAccountName == stuckAccount {
		m.spec.Pod.ServiceAccountName = "mended"
	}
	for range 600 {
		if _, ok := m.pass().(plan.Idle); ok && m.asSpecified() {
			return
		}
		m.progress()
		if t.Failed() {
			return
		}
	}
	t.Errorf("never arrived at size %d, version %s: %s", m.spec.Size, m.spec.EffectiveVersion(), m.describe())
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) alive(mm modelMember) bool {
	p := m.pods[mm.name]
	return p != nil && p.running && mm.joined
}

func (m *model) voters() (all, alive int) {
	for _, mm := range m.members {
		if !mm.learner {
			all++
			if m.alive(mm) {
				alive++
			}
		}
	}
	return all, alive
}

func (m *model) quorum() bool {
	all, alive := m.voters()
	return all > 0 && alive >= etcd.Quorum(all)
}

func (m *model) observation() *plan.Observation {
	o := &plan.Observation{
		Now: m.now, Names: manifest.Names{Namespace: "ns", Cluster: "c"}, Spec: *m.spec.DeepCopy(), Status: *m.status.DeepCopy(),
		ClusterVersion: m.agreed, Gate: m.gate, LogTarget: m.logTarget, LogCount: m.logCount, Quorum: m.quorum(),
		PeerService:   plan.OwnedObject{Name: "c", Owned: m.peerService},
		ClientService: plan.OwnedObject{Name: "c-client", Owned: m.clientService},
		Budget:        plan.BudgetState{OwnedObject: plan.OwnedObject{Name: "c", Owned: m.budget > 0}, MinAvailable: m.budget},
	}
	for range m.spec.Size + 1 {
		m.serial++
		o.NewNames = append(o.NewNames, fmt.Sprintf("c-%d", m.serial))
	}
	o.Template = m.template()
	m.restore.observe(o)
	o.Record, o.Seen = o.Status.Record, plan.Testimony{ClusterID: 1, Index: m.index, Revision: int64(m.index)} // small
	for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
		v := m.volumes[name]
		o.Volumes = append(o.Volumes, manifest.VolumeState{Name: name, UID: types.UID(fmt.Sprint(v.uid)), Version: v.version, Template: v.template})
	}
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[name]
		problem := ""
		if p.stuck {
			problem = "stuck"
		}
		o.Pods = append(o.Pods, manifest.PodState{
			Template: p.template, Problem: problem,
			Name: name, UID: types.UID(fmt.Sprint(p.uid)), Image: p.image, Version: p.asked(),
			Previous: p.before, Created: p.created, Seed: p.Seed, InitialCluster: p.InitialCluster, ManyLearners: true, SnapshotCount: m.snapshots, Scheduled: true,
			Guarded: m.wipes.guarded, Noted: p.noted,
			Source: manifest.SourceDigest(p.Source), Preparing: p.preparing(), AtGate: p.atGate, Started: p.started, Running: p.running, Ready: p.running, BadImage: p.bad, Crashing: p.refused,
		})
	}
	leader := uint64(0)
	for _, mm := range m.members {
		if m.alive(mm) && !mm.learner && o.Quorum {
			leader = mm.id
			break
		}
	}
	answered := false
	for _, mm := range m.members {
		answered = answered || m.alive(mm) && !mm.learner
	}
	for _, mm := range m.members {
		s := plan.MemberState{
			Member:  etcd.Member{ID: mm.id, PeerURLs: []string{o.Names.PeerURL(mm.name)}, Learner: mm.learner},
			PodName: mm.name, Pod: o.Pod(mm.name), Volume: o.Volume(mm.name),
		}
		if mm.joined {
			s.Name = mm.name
		}
		if m.alive(mm) {
			s.Status = &etcd.Status{MemberID: mm.id, LeaderID: leader, Version: m.pods[mm.name].runs, RaftIndex: m.index, RaftApplied: m.index, Alarms: m.restore.alarms()}
		} else {
			s.DownSince = m.now
			if p := m.pods[mm.name]; p != nil && !p.wiped.IsZero() {
				s.DownSince, s.Awaited = p.wiped, m.now.Sub(p.wiped)
			}
		}
		if answered {
			o.Members = append(o.Members, s)
		}
	}
	m.wipes.observe(m, o)
	return o
}

// pass is one pass of the operator, which may die before or after the step.
func (m *model) pass() plan.Step {
	m.now = m.now.Add(time.Second)
	m.index++
	m.agree()
	if low := m.lowest(); low.Major > 0 && low.Minor < 6 {
		m.oldEntries = m.index
	}
	o := m.observation()
	s := plan.Plan(o)
	m.note("%s", s)
	if m.rand.IntN(20) == 0 {
		m.logTarget = 0
		return s // the operator dies before the step
	}
	m.status = statusAfter(o, s, 1)
	if m.rand.IntN(20) == 0 {
		m.logTarget = 0
		return s // … or between status and step
	}
	m.restore.check(m, s)
	had := m.quorum()
	m.apply(s)
	m.checkBudget()
	all, alive := m.voters()
	restarts := false
	switch s.(type) {
	case plan.SetVersion, plan.RecyclePod:
		restarts = true
	}
	if had && !m.quorum() && !(restarts && all <= 2) && !m.joiningVoter(s) {
		m.t.Errorf("the step %q took the quorum: %d of %d voters are left", s, alive, all)
	}
	return s
}

// checkBudget reports whether evictions could take the quorum now: they take the
// voters first, as far as the budget lets them.
func (m *model) checkBudget() {
	if m.budget == 0 {
		return
	}
	all, alive := m.voters()
	ready := alive
	for _, mm := range m.members {
		if mm.learner && m.alive(mm) {
			ready++
		}
	}
	if evictions := ready - m.budget; evictions > 0 && m.quorum() && alive-evictions < etcd.Quorum(all) && !m.waitingVoter() {
		m.t.Errorf("the budget of %d lets %d of %d ready members be evicted: %d of %d voters would be left", m.budget, evictions, ready, alive-evictions, all)
	}
}

// joiningVoter reports whether a member joins a cluster of one with a vote, because its etcd
// has no learners.
func (m *model) joiningVoter(s plan.Step) bool {
	add, ok := s.(plan.AddMember)
	return ok && !add.Learner
}

func (m *model) apply(s plan.Step) {
	switch s := s.(type) {
	case plan.CreateService:
		if s.Client {
			m.clientService = true
		} else {
			m.peerService = true
		}
	case plan.CreateBudget:
		m.budget = s.MinAvailable
	case plan.UpdateBudget:
		m.budget = s.To
	case plan.DeleteBudget:
		m.budget = 0
	case plan.CreatePods:
		for _, p := range s.Pods {
			if m.rand.IntN(10) == 0 {
				continue // the operator dies, or the API server refuses
			}
			if m.pods[p.Name] != nil {
				m.t.Errorf("pod %s is made twice", p.Name)
			}
			m.serial++
			if p.Seed && p.Source == nil && m.restore.source != nil {
				m.t.Errorf("an empty seed is made of a cluster that is to be restored")
			}
			if p.Rejoins && m.volumes[p.Name] == nil {
				m.t.Errorf("pod %s is to rejoin without a volume", p.Name)
			}
			if p.Rejoins && m.volumes[p.Name] != nil && m.volumes[p.Name].data && mustVersion(p.Version).Minor < m.agreed.Minor {
				m.t.Errorf("%s: the members have agreed on %s, and an earlier etcd does not open such data", s, m.agreed)
			}
			if p.Volume && m.volumes[p.Name] == nil {
				m.volumes[p.Name] = &modelVolume{uid: m.serial, template: m.template().Volume}
				m.serial++
			}
			made := m.template()
			if p.Volume {
				made.Volume = ""
			}
			m.pods[p.Name] = &modelPod{template: made, stuck: m.spec.Pod.ServiceAccountName == stuckAccount, MemberPod: p, uid: m.serial, created: m.now, image: manifest.Image(&m.spec, p.Version, false), bad: !slices.Contains(goodVersions, p.Version)}
		}
	case plan.DeletePod:
		m.checkPod(s, s.Name, s.UID)
		for _, mm := range m.members {
			if mm.name == s.Name && m.status.Phase == api.ClusterPhaseRunning {
				m.t.Errorf("the pod of member %s is deleted", s.Name)
			}
		}
		delete(m.pods, s.Name)
	case plan.RecyclePod:
		m.checkPod(s, s.Name, s.UID)
		if m.volumes[s.Name] == nil {
			m.t.Errorf("%s: its data goes with it", s)
		}
		delete(m.pods, s.Name)
	case plan.DeleteVolume:
		if slices.ContainsFunc(m.members, func(mm modelMember) bool { return mm.name == s.Name }) {
			m.t.Errorf("%s: it is a member", s)
		}
		m.checkVolume(s, s.Name, s.UID)
		delete(m.volumes, s.Name)
	case plan.SetVolumeVersion:
		m.checkVolume(s, s.Name, s.UID)
		m.volumes[s.Name].version = s.Version
	case plan.NoteMember:
		m.pods[s.Pod].noted = true
	case plan.SetVersion:
		m.checkPod(s, s.Pod, s.UID)
		p := m.pods[s.Pod]
		if s.Volume != "" {
			m.checkVolume(s, s.Pod, s.Volume)
			m.volumes[s.Pod].version = s.To
			if m.rand.IntN(10) == 0 {
				return // the operator dies between the two writes
			}
		}
		p.image, p.running, p.before = manifest.Image(&m.spec, s.To, false), false, s.Previous
		p.bad = !slices.Contains(goodVersions, s.To)
		if mustVersion(s.To).Minor == 7 && m.oldEntries > 0 && m.index < m.oldEntries+cmp.Or(m.snapshots, etcd.SnapshotCount) {
			m.t.Errorf("%s: its log still holds entries of etcd 3.5", s)
		}
		from := m.lowest()
		if from.Major == 0 {
			from = m.agreed // all pods are new
		}
		if err := etcd.CheckChange(from, mustVersion(s.To)); err != nil {
			m.t.Errorf("%s: %v", s, err)
		}
		if to := mustVersion(s.To); to.Minor > m.agreed.Minor+1 {
			m.t.Errorf("%s: the cluster's version is still %s", s, m.agreed)
		}
		if v := m.volumes[s.Pod]; v != nil && v.data && !p.bad && m.rand.IntN(4) == 0 {
			p.running, p.runs = true, s.To
			m.agree()
			m.note("!! pod %s restarts, and is drained before the operator looks", s.Pod)
			delete(m.pods, s.Pod)
		}
	case plan.AddMember:
		if !m.quorum() || m.rand.IntN(3) == 0 {
			return // not yet
		}
		learners := 0
		for _, mm := range m.members {
			if mm.learner {
				learners++
			}
		}
		if s.Learner && learners > 0 && !m.lowest().HasMaxLearners() {
			m.t.Errorf("a second learner is added to etcd %s", m.lowest())
		}
		m.serial++
		m.members = append(m.members, modelMember{id: uint64(m.serial), name: s.Name, learner: s.Learner})
	case plan.PromoteMember:
		for i := range m.members {
			if m.members[i].id == s.ID && m.quorum() && m.alive(m.members[i]) && m.rand.IntN(3) > 0 {
				m.members[i].learner = false
			}
		}
	case plan.RemoveMember:
		if s.Pod != "" {
			m.checkPod(s, s.Name, s.Pod)
		}
		if s.Volume != (m.volumes[s.Name] != nil) {
			m.t.Errorf("%s: it has a volume: %t, and the step says %t", s, m.volumes[s.Name] != nil, s.Volume)
		}
		if m.quorum() {
			m.members = slices.DeleteFunc(m.members, func(mm modelMember) bool { return mm.id == s.ID })
			if p := m.pods[s.Name]; p != nil {
				p.running = false
			}
		}
	case plan.AdvanceLog:
		m.logTarget, m.logCount = s.To, s.Count
		m.index += min(2500, s.To-s.From)
	case plan.LiftAlarms:
		if len(s.Alarms) != 1 || s.Alarms[0].MemberID != formerMember {
			m.t.Errorf("%s: there is no such alarm", s)
		}
		m.restore.alarm = m.rand.IntN(3) == 0
	case plan.MoveLeader:
		// The model's leader is the first voter that is alive.
		i := slices.IndexFunc(m.members, func(mm modelMember) bool { return mm.id == s.ID })
		to := m.members[i]
		m.members = slices.Insert(slices.Delete(m.members, i, i+1), 0, to)
	}
}

// checkPod looks whether a step means the pod that there is under a name.
func (m *model) checkPod(s plan.Step, name string, uid types.UID) {
	if p := m.pods[name]; p == nil || fmt.Sprint(p.uid) != string(uid) {
		m.t.Errorf("%s: there is no pod with the UID %s", s, uid)
	}
}

func (m *model) checkVolume(s plan.Step, name string, uid types.UID) {
	if v := m.volumes[name]; v == nil || fmt.Sprint(v.uid) != string(uid) {
		m.t.Errorf("%s: there is no volume with the UID %s", s, uid)
	}
}

// asked is the version in the tag of the pod's image.
func (p *modelPod) asked() string {
	return strings.TrimPrefix(p.image[strings.LastIndex(p.image, ":")+1:], "v")
}

// agree lets etcd's leader look at the members' versions, as it does now and then.
func (m *model) agree() {
	if all, alive := m.voters(); all == alive && len(m.members) > 0 && m.rand.IntN(5) == 0 {
		m.agreed = m.lowest()
	}
}

func (m *model) lowest() etcd.Version {
	var lowest etcd.Version
	for _, mm := range m.members {
		if p := m.pods[mm.name]; p != nil && p.runs != "" {
			if v := mustVersion(p.runs); lowest.Major == 0 || v.LT(lowest.Version) {
				lowest = v
			}
		}
	}
	return lowest
}

func mustVersion(s string) etcd.Version {
	v, err := etcd.ParseVersion(s)
	if err != nil {
		panic(err)
	}
	return v
}

// progress lets pods get on.
func (m *model) progress() {
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		p := m.pods[name]
		if p == nil || m.rand.IntN(3) > 0 {
			continue // also if a pass meanwhile deleted it
		}
		i := slices.IndexFunc(m.members, func(mm modelMember) bool { return mm.name == name })
		switch {
		case p.running:
		case !p.wiped.IsZero():
			m.wipes.start(m, name)
		case p.Source != nil && p.stage < 2 && !p.stuck && !p.bad:
			m.restoreStage(p)
		case !p.atGate:
			p.atGate = true
		case p.bad || p.stuck:
			// its image never comes, or it finds no node
		case p.Rejoins && !p.started:
			// check-dns lets nobody pass whose data is not there.
			if v := m.volumes[name]; v != nil && v.data && i >= 0 && m.members[i].joined {
				p.started, p.running, p.runs = true, true, p.asked()
				if low := m.lowest(); low.Major > 0 && mustVersion(p.runs).Minor+1 < low.Minor {
					m.t.Errorf("%s comes back as %s among %s", name, p.runs, low)
				}
			}
		case p.Seed && !p.started:
			p.started, p.running, p.runs = true, true, p.Version
			m.restore.starts(m, p)
			if slices.ContainsFunc(m.members, func(mm modelMember) bool { return mm.name != name && m.alive(mm) }) {
				m.t.Errorf("%s starts a second cluster beside one that runs", name)
			}
			m.index, m.oldEntries, m.agreed = 1, 0, mustVersion(p.Version)
			m.serial++
			if m.status.Phase != api.ClusterPhaseCreating {
				m.t.Errorf("an empty cluster is started in phase %q", m.status.Phase)
			}
			m.members = []modelMember{{id: uint64(m.serial), name: name, joined: true}}
			m.write(name)
		case p.started:
			if i >= 0 && m.members[i].joined {
				p.running, p.refused, p.runs = true, false, strings.TrimPrefix(p.image[strings.LastIndex(p.image, ":")+1:], "v")
				m.agree() // before the operator looks
			}
		case i >= 0 && m.expects(p):
			// check-dns ends; etcd looks at the membership once more a moment later.
			p.started = true
			if m.rand.IntN(4) == 0 {
				m.pass()
			}
			i = slices.IndexFunc(m.members, func(mm modelMember) bool { return mm.name == name })
			if i < 0 || !m.expects(p) || m.pods[name] != p {
				p.refused = true
				continue
			}
			p.running, p.runs = true, p.Version
			m.members[i].joined = true
			m.write(name)
		}
	}
}

func (m *model) expects(p *modelPod) bool {
	n := manifest.Names{Namespace: "ns", Cluster: "c"}
	if len(p.InitialCluster) != len(m.members) {
		return false
	}
	for _, mm := range m.members {
		if _, ok := p.InitialCluster[n.PeerURL(mm.name)]; !ok {
			return false
		}
	}
	return true
}

// trouble is what others do to the cluster. It takes a member only where the
// quorum survives, so that a lost quorum is the operator's doing.
func (m *model) trouble() {
	if m.rand.IntN(6) > 0 {
		return
	}
	names := slices.Sorted(maps.Keys(m.pods))
	m.restore.trouble(m)
	m.wipes.trouble(m)
	switch m.rand.IntN(8) {
	case 0: // a pod is lost with its data
		if len(names) == 0 {
			return
		}
		name := names[m.rand.IntN(len(names))]
		p := m.pods[name]
		delete(m.pods, name)
		if m.volumes[name] == nil && m.status.Phase == api.ClusterPhaseRunning && len(m.members) > 0 && (!m.quorum() || m.waitingVoter()) {
			m.pods[name] = p
			return
		}
		m.note("!! pod %s is lost", name)
	case 1: // etcd crashes
		for _, name := range names {
			if p := m.pods[name]; p.running {
				p.running = false
				if !m.quorum() && m.rand.IntN(3) > 0 {
					p.running = true
					continue
				}
				m.note("!! %s crashes", name)
				return
			}
		}
	case 2:
		m.spec.Size = 1 + m.rand.IntN(6)
		m.note("!! size %d", m.spec.Size)
	case 3:
		m.spec.Version = append(goodVersions, "3.6.99", "3.5.99")[m.rand.IntN(5)]
		m.note("!! version %s", m.spec.Version)
	case 4:
		m.spec.Paused = m.rand.IntN(4) == 0
	case 6: // an edit of the template, perhaps one with which pods can't run
		m.spec.Pod.ServiceAccountName = []string{"a", "b", stuckAccount}[m.rand.IntN(3)]
		switch m.rand.IntN(6) {
		case 0:
			m.spec.Pod.PersistentVolumeClaimSpec = nil
		case 1:
			m.keepOnVolumes()
		}
		m.note("!! account %s, volumes %t", m.spec.Pod.ServiceAccountName, m.spec.Persistent())
	case 7: // the power is cut
		if slices.ContainsFunc(m.members, func(mm modelMember) bool { return !mm.learner && (m.volumes[mm.name] == nil || !mm.joined) }) {
			return // nothing could bring them back
		}
		clear(m.pods)
		m.note("!! all pods are lost")
	case 5: // Services and the budget vanish
		if m.rand.IntN(2) == 0 {
			m.budget = 0
		}
		m.clientService = m.clientService && m.rand.IntN(2) == 0
		m.peerService = m.peerService && m.rand.IntN(2) == 0
	}
}

// waitingVoter reports whether a vote waits for a pod that has not started, which
// versions without learners can't do without.
func (m *model) waitingVoter() bool {
	return slices.ContainsFunc(m.members, func(mm modelMember) bool { return !mm.learner && !mm.joined })
}

// reachableVersion is a good version to which the members can move.
func (m *model) reachableVersion() string {
	for _, v := range slices.Backward(goodVersions) {
		low := m.lowest()
		if runs, err := etcd.ParseVersion(m.status.CurrentVersion); err == nil && (low.Major == 0 || runs.LT(low.Version)) {
			low = runs // that of lost pods
		}
		if low.Major == 0 || etcd.CheckChange(low, mustVersion(v)) == nil {
			return v
		}
	}
	return m.spec.Version
}

func (m *model) asSpecified() bool {
	if len(m.members) != m.spec.Size || len(m.pods) != m.spec.Size || !m.quorum() || !m.clientService || !m.restore.serves(m) {
		return false
	}
	if least := etcd.Quorum(m.spec.Size); m.spec.Size >= 3 && m.budget != least || m.spec.Size < 3 && m.budget != 0 {
		return false
	}
	for _, mm := range m.members {
		if mm.learner || !m.alive(mm) || m.pods[mm.name].runs != m.spec.EffectiveVersion() {
			return false
		}
		if m.pods[mm.name].template.Pod != m.template().Pod || (m.volumes[mm.name] != nil) != m.spec.Persistent() {
			return false
		}
	}
	if m.spec.Persistent() && len(m.volumes) != m.spec.Size || !m.spec.Persistent() && len(m.volumes) > 0 {
		return false
	}
	return true
}

// stuckAccount is a service account with which no pod can run.
const stuckAccount = "stuck"

func (m *model) template() manifest.Template {
	made, err := manifest.TemplateOf(&m.spec, "")
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

func (m *model) keepOnVolumes() {
	m.spec.Pod.PersistentVolumeClaimSpec = &corev1.PersistentVolumeClaimSpec{}
}

// write puts the member's first data on its volume, if it has one.
func (m *model) write(member string) {
	if v := m.volumes[member]; v != nil {
		v.data = true
	}
}

func (m *model) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "phase %s, quorum %t\n", m.status.Phase, m.quorum())
	for _, mm := range m.members {
		fmt.Fprintf(&b, "member %+v\n", mm)
	}
	for name, p := range m.pods {
		fmt.Fprintf(&b, "pod %s %+v\n", name, *p)
	}
	return b.String()
}
