// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"crypto/sha1" // as etcd makes its IDs
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// The times of the model's members. The ticks are longer than etcd's, for speed.
const (
	tick           = 500 * time.Millisecond
	electionTicks  = 4
	requestTimeout = 7 * time.Second
	healthInterval = 5 * time.Second
	// unconnectedChance is how often a member holds a peer for unconnected that began at the
	// same time, until one of them restarts: etcd has one flag for all connections to a peer,
	// and an old connection that ends late clears it.
	unconnectedChance = 1.0 / 20
	// snapshotAfter is the number of entries between two snapshots of a member's state, and
	// catchUp the number of older entries that it keeps.
	snapshotAfter = 150
	catchUp       = 30
	// mostLearners is the limit that the operator sets.
	mostLearners = 6
)

// disk is a member's durable state: its write-ahead log.
type disk struct {
	name              string
	member, clusterID uint64 // 0: etcd was never here
	log               *raft.MemoryStorage
	started           bool // the file of check-dns, if it is on the disk
	hung              bool // no fsync completes
	everServed        bool
}

func (d *disk) hasData() bool { return d != nil && d.log != nil }

// payload is the meaning of a log entry.
type payload struct {
	write    *write
	publish  *publication
	change   *memberInfo
	promote  bool
	state    *machine // of a snapshot
	proposer *member
	then     func(error)
}

// digest distinguishes entries. An entry that etcd itself writes is the same in two logs.
func (p *payload) digest(id uint64) string {
	if p.publish != nil {
		return fmt.Sprintf("%+v", *p.publish)
	}
	return strconv.FormatUint(id, 10)
}

type write struct {
	key   string
	value int
}

type publication struct {
	member uint64
	name   string
}

// memberInfo is a member in the membership.
type memberInfo struct {
	id      uint64
	url     string
	name    string
	learner bool
}

// machine is the state that the log leads to.
type machine struct {
	data     map[string]int
	revision int64
	members  map[uint64]memberInfo
	removed  map[uint64]bool
	sums     []uint32 // of the data at each revision; only in a life with an import
}

func newMachine() *machine {
	return &machine{data: map[string]int{}, revision: 1, members: map[uint64]memberInfo{}, removed: map[uint64]bool{}}
}

func (m *machine) clone() *machine {
	return &machine{maps.Clone(m.data), m.revision, maps.Clone(m.members), maps.Clone(m.removed), slices.Clone(m.sums)}
}

// sum notes the sum of the data after a write.
func (m *machine) sum(write *write) {
	for int64(len(m.sums)) < m.revision {
		m.sums = append(m.sums, 0) // no write has made these revisions
	}
	m.sums = append(m.sums, uint32(life{seed: uint64(m.sums[len(m.sums)-1])}.number(write.key, write.value)))
}

func (m *machine) ids() []uint64 { return slices.Sorted(maps.Keys(m.members)) }

func (m *machine) voters() []uint64 {
	return slices.DeleteFunc(m.ids(), func(id uint64) bool { return m.members[id].learner })
}

// history is the log of a cluster ID: the committed entries.
type history struct {
	entries map[uint64]string
	last    uint64
	machine *machine
	served  bool // a client relies on it
	// replaced is true if a restore has begun to replace its cluster.
	replaced bool
	restored bool            // it began with a backup
	gone     map[uint64]bool // the members that a quorum has ever removed
}

// member is a process of etcd.
type member struct {
	w         *world
	run       *podRun
	disk      *disk
	id        uint64
	clusterID uint64
	version   string
	startedAt time.Time
	node      *raft.RawNode
	machine   *machine
	told      map[uint64]memberInfo // of the others, before the log names them
	conf      *pb.ConfState
	applied   uint64
	snapped   uint64
	lead      uint64
	ledSince  time.Time
	serving   bool // it has joined, and serves clients
	stopped   bool
	why       string
	held      *raft.Ready // work after an fsync that hangs
	reads     map[string]*read
	readNo    uint64
	waiting   map[uint64]bool // payloads proposed here, without an outcome yet
	published time.Time
	receiving int // copies of the database that are being sent to it
}

type read struct {
	index uint64
	since time.Time
	then  func(error)
}

// quiet is raft's logger. A panic of raft ends the process.
type quiet struct{}

func (quiet) Debug(...any)              {}
func (quiet) Debugf(string, ...any)     {}
func (quiet) Error(...any)              {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Info(...any)               {}
func (quiet) Infof(string, ...any)      {}
func (quiet) Warning(...any)            {}
func (quiet) Warningf(string, ...any)   {}
func (quiet) Fatal(v ...any)            { panic(raftPanic(fmt.Sprint(v...))) }
func (quiet) Fatalf(f string, v ...any) { panic(raftPanic(fmt.Sprintf(f, v...))) }
func (quiet) Panic(v ...any)            { panic(raftPanic(fmt.Sprint(v...))) }
func (quiet) Panicf(f string, v ...any) { panic(raftPanic(fmt.Sprintf(f, v...))) }

// raftPanic is the value of raft's panics.
type raftPanic string

// hashed returns an ID as etcd computes it.
func hashed(b []byte) uint64 {
	sum := sha1.Sum(b) // as etcd makes its IDs
	return binary.BigEndian.Uint64(sum[:8])
}

// memberID returns the ID of a member of a new cluster
// (server/etcdserver/api/membership/member.go).
func memberID(url, token string, at *time.Time) uint64 {
	b := []byte(url + token)
	if at != nil {
		b = append(b, fmt.Sprint(at.Unix())...)
	}
	return hashed(b)
}

func clusterIDOf(ids []uint64) uint64 {
	var b []byte
	for _, id := range slices.Sorted(slices.Values(ids)) {
		b = binary.BigEndian.AppendUint64(b, id)
	}
	return hashed(b)
}

// flags are the flags of etcd that the model supports.
type flags struct {
	name, token    string
	fresh          bool
	initialCluster map[string]string // names by URL
}

func parseFlags(command []string) flags {
	f := flags{token: "etcd-cluster", fresh: true, initialCluster: map[string]string{}}
	for _, arg := range command {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--name":
			f.name = value
		case "--initial-cluster-state":
			f.fresh = value == "new"
		case "--initial-cluster-token":
			f.token = value
		case "--initial-cluster":
			f.initialCluster = etcd.ParseInitialCluster(value)
		}
	}
	return f
}

// startMember starts etcd on a disk by etcd's own rules. The error is etcd's reason to exit.
func (w *world) startMember(run *podRun, d *disk, f flags, version string) (*member, error) {
	m := &member{
		w: w, run: run, disk: d, version: version, startedAt: time.Now(), machine: newMachine(),
		reads: map[string]*read{}, waiting: map[uint64]bool{}, conf: &pb.ConfState{},
	}
	switch {
	case d.hasData():
		m.id, m.clusterID = d.member, d.clusterID
	case f.fresh:
		ids := map[string]uint64{}
		var all []uint64
		for url, name := range f.initialCluster {
			ids[name] = memberID(url, f.token, nil)
			all = append(all, ids[name])
		}
		m.id, m.clusterID = ids[f.name], clusterIDOf(all)
	default:
		existing := w.askMembership(run, f)
		if existing == nil {
			return nil, errors.New("cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs")
		}
		if len(existing.machine.members) != len(f.initialCluster) {
			return nil, errors.New("error validating peerURLs: member count is unequal")
		}
		for _, info := range existing.machine.members {
			name, ok := f.initialCluster[info.url]
			if !ok {
				return nil, errors.New("error validating peerURLs: unmatched member while checking PeerURLs")
			}
			if name == f.name {
				m.id = info.id
			}
		}
		m.clusterID = existing.clusterID
		m.told = maps.Clone(existing.machine.members)
	}
	fresh := !d.hasData()
	if fresh {
		d.log, d.member, d.clusterID, d.name = raft.NewMemoryStorage(), m.id, m.clusterID, f.name
	}
	if snap, err := d.log.Snapshot(); err == nil && !raft.IsEmptySnap(snap) {
		m.restore(snap)
	}
	var err error
	m.guard(func() {
		m.node, err = raft.NewRawNode(&raft.Config{
			ID: m.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: d.log, Applied: m.applied,
			MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 512, CheckQuorum: true, PreVote: true, Logger: quiet{},
		})
	})
	if m.stopped {
		return nil, errors.New(m.why)
	}
	if err != nil {
		return nil, err
	}
	if fresh && f.fresh {
		var peers []raft.Peer
		for url := range f.initialCluster {
			info := memberInfo{id: memberID(url, f.token, nil), url: url}
			peers = append(peers, raft.Peer{ID: info.id, Context: w.pay(payload{change: &info})})
		}
		slices.SortFunc(peers, func(a, b raft.Peer) int { return cmp.Compare(a.ID, b.ID) })
		if err := m.node.Bootstrap(peers); err != nil {
			return nil, err
		}
	}
	w.note(fmt.Sprintf("start %s %x of %x fresh=%t", f.name, m.id, m.clusterID, fresh))
	m.guard(m.pump)
	if !m.stopped {
		w.after(w.life.between(0, tick, "phase", f.name, w.nth("phase", f.name)), m.tick)
	}
	return m, nil
}

// askMembership returns the membership for a member that joins: from the first peer that
// answers, in the order of their URLs.
func (w *world) askMembership(run *podRun, f flags) *member {
	for _, url := range slices.Sorted(maps.Keys(f.initialCluster)) {
		if f.initialCluster[url] == f.name {
			continue
		}
		if p := w.memberAt(url); p != nil && w.reachable(run.node.name, p.run.node.name) && len(p.machine.members) > 0 && p.applied > 0 {
			return p
		}
	}
	return nil
}

// memberAt returns the process at a peer URL.
func (w *world) memberAt(url string) *member {
	name := w.hostOf(url)
	for _, n := range w.nodes {
		if r := n.runOf(name); r != nil && r.proc != nil && !r.proc.stopped {
			return r.proc
		}
	}
	return w.imports.formerAt(name)
}

// hostOf returns the name of the pod at a URL.
func (w *world) hostOf(url string) string {
	name, known := w.hosts[url]
	if !known {
		host := strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
		name, _, _ = strings.Cut(host, ".")
		w.hosts[url] = name
	}
	return name
}

// pay keeps a payload, and returns its key for the log.
func (w *world) pay(p payload) []byte {
	w.payloads = append(w.payloads, p)
	return binary.BigEndian.AppendUint64(nil, uint64(len(w.payloads)-1))
}

func (w *world) paid(data []byte) (uint64, *payload) {
	id := binary.BigEndian.Uint64(data)
	return id, &w.payloads[id]
}

// guard runs a part of the process: a panic of raft ends the process, like etcd. Some of
// raft's panics are plain strings, not calls of its logger ("need non-empty snapshot"). They
// follow from a disk with an older state than the member has acknowledged.
func (m *member) guard(part func()) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case raftPanic:
			m.stop("panic: " + string(r))
		case string:
			if !m.w.rolledBack {
				panic(r)
			}
			m.stop("panic: " + r)
		default:
			panic(r)
		}
	}()
	if !m.stopped {
		part()
	}
}

// stop ends the process.
func (m *member) stop(why string) {
	if m.stopped {
		return
	}
	m.stopped, m.why = true, why
	m.w.note(fmt.Sprintf("stop %x: %s", m.id, why))
	for _, key := range m.readKeys() {
		m.reads[key].then(rpctypes.ErrStopped)
	}
	m.reads = nil
	for _, id := range slices.Sorted(maps.Keys(m.waiting)) {
		m.settle(id, rpctypes.ErrStopped)
	}
}

// settle reports an entry's outcome to its proposer.
func (m *member) settle(id uint64, err error) {
	if !m.waiting[id] {
		return
	}
	delete(m.waiting, id)
	if p := &m.w.payloads[id]; p.then != nil {
		p.then(err)
	}
}

func (m *member) tick() {
	if m.stopped {
		return
	}
	m.w.after(tick, m.tick)
	if m.held != nil {
		if m.disk.hung {
			return
		}
		m.guard(m.release)
	}
	m.guard(func() {
		m.node.Tick()
		m.pump()
		now := time.Now()
		if !m.serving && now.Sub(m.published) > 2*time.Second && m.lead != 0 {
			m.published = now
			m.propose(payload{publish: &publication{m.id, m.disk.name}})
		}
		for _, key := range m.readKeys() {
			if r := m.reads[key]; r != nil && r.index == 0 && now.Sub(r.since) < requestTimeout {
				m.node.ReadIndex([]byte(key)) // as etcd retries
			}
		}
		m.pump()
	})
}

// readKeys returns the keys of the reads that wait, in order. Mostly none waits.
func (m *member) readKeys() []string {
	if len(m.reads) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m.reads))
}

// release continues after a late fsync.
func (m *member) release() {
	rd := *m.held
	m.held = nil
	m.save(rd)
	m.pump()
}

// pump processes raft's Ready.
func (m *member) pump() {
	for !m.stopped && m.held == nil && m.node.HasReady() {
		rd := m.node.Ready()
		if rd.SoftState != nil {
			m.lead, m.ledSince = rd.Lead, time.Now()
		}
		if m.leads() {
			m.send(rd.Messages)
			rd.Messages = nil
		}
		if m.disk.hung && (rd.MustSync || !raft.IsEmptySnap(rd.Snapshot)) {
			m.held = &rd
			return
		}
		m.save(rd)
	}
}

func (m *member) leads() bool { return m.lead == m.id }

func (m *member) save(rd raft.Ready) {
	log := m.disk.log
	if !raft.IsEmptySnap(rd.Snapshot) {
		must(log.ApplySnapshot(rd.Snapshot))
		m.restore(rd.Snapshot)
	}
	must(log.Append(rd.Entries))
	if !raft.IsEmptyHardState(rd.HardState) {
		must(log.SetHardState(rd.HardState))
	}
	m.send(rd.Messages)
	for _, e := range rd.CommittedEntries {
		m.apply(e)
		if m.stopped {
			return
		}
	}
	if n := len(rd.CommittedEntries); n > 0 && m.leads() && rd.CommittedEntries[n-1].GetTerm() == m.node.BasicStatus().HardState.GetTerm() {
		m.w.ledBy(m)
	}
	for _, rs := range rd.ReadStates {
		if r := m.reads[string(rs.RequestCtx)]; r != nil {
			r.index = max(1, rs.Index)
		}
	}
	m.node.Advance(rd)
	for _, key := range m.readKeys() {
		if r := m.reads[key]; r != nil && r.index > 0 && m.applied >= r.index {
			delete(m.reads, key)
			r.then(nil)
		}
	}
	m.compact()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// restore continues from a snapshot.
func (m *member) restore(snap *pb.Snapshot) {
	_, p := m.w.paid(snap.GetData())
	m.machine = p.state.clone()
	m.applied, m.snapped = snap.GetMetadata().GetIndex(), snap.GetMetadata().GetIndex()
	m.conf = snap.GetMetadata().GetConfState()
	m.seenSelf()
}

func (m *member) compact() {
	// etcd keeps the entries that are written while a member receives a copy.
	if m.applied < m.snapped+snapshotAfter || m.w.underWay > 0 {
		return
	}
	_, err := m.disk.log.CreateSnapshot(m.applied, m.conf, m.w.pay(payload{state: m.machine.clone()}))
	must(err)
	if m.applied > catchUp {
		if err := m.disk.log.Compact(m.applied - catchUp); err != nil && !errors.Is(err, raft.ErrCompacted) {
			panic(err)
		}
	}
	m.snapped = m.applied
}

// apply applies a committed entry.
func (m *member) apply(e *pb.Entry) {
	m.applied = e.GetIndex()
	if e.GetType() == pb.EntryNormal {
		if len(e.GetData()) == 0 {
			m.w.remember(m, e, "")
			return
		}
		id, p := m.w.paid(e.GetData())
		m.w.remember(m, e, p.digest(id))
		switch {
		case p.write != nil:
			m.machine.revision++
			m.machine.data[p.write.key] = p.write.value
			if m.w.imports != nil {
				m.machine.sum(p.write)
			}
		case p.publish != nil:
			if info, ok := m.machine.members[p.publish.member]; ok {
				info.name = p.publish.name
				m.machine.members[info.id] = info
			}
			m.seenSelf()
		}
		m.settle(id, nil)
		return
	}
	var cc pb.ConfChange
	must(proto.Unmarshal(e.GetData(), &cc))
	id, p := m.w.paid(cc.GetContext())
	m.w.remember(m, e, fmt.Sprintf("%s %+v %t", cc.GetType(), *p.change, p.promote))
	if err := m.machine.allows(&cc, p); err != nil {
		cc.NodeId = new(uint64(0)) // as etcd does with a change that it refuses
		m.node.ApplyConfChange(&cc)
		m.settle(id, err)
		return
	}
	m.conf = m.node.ApplyConfChange(&cc)
	switch cc.GetType() {
	case pb.ConfChangeRemoveNode:
		delete(m.machine.members, cc.GetNodeId())
		m.machine.removed[cc.GetNodeId()] = true
		m.w.removed(m.clusterID, cc.GetNodeId())
	default:
		info := *p.change
		if p.promote {
			info = m.machine.members[info.id]
			info.learner = false
		}
		m.machine.members[info.id] = info
	}
	m.w.membershipChanged(m, e.GetIndex())
	m.settle(id, nil)
	if cc.GetType() == pb.ConfChangeRemoveNode && cc.GetNodeId() == m.id {
		self := m
		m.w.after(time.Second, func() { self.stop("the member has been permanently removed from the cluster") })
	}
}

// allows checks a membership change as etcd does when it applies one.
func (m *machine) allows(cc *pb.ConfChange, p *payload) error {
	id := cc.GetNodeId()
	switch {
	case m.removed[id]:
		return rpctypes.ErrMemberNotFound
	case cc.GetType() == pb.ConfChangeRemoveNode:
		if _, ok := m.members[id]; !ok {
			return rpctypes.ErrMemberNotFound
		}
	case p.promote:
		if info, ok := m.members[id]; !ok {
			return rpctypes.ErrMemberNotFound
		} else if !info.learner {
			return rpctypes.ErrMemberNotLearner
		}
	default:
		learners := 0
		for _, info := range m.members {
			if info.id == id || info.url == p.change.url {
				return rpctypes.ErrPeerURLExist
			}
			if info.learner {
				learners++
			}
		}
		if p.change.learner && learners >= mostLearners {
			return rpctypes.ErrTooManyLearners
		}
	}
	return nil
}

// seenSelf begins to serve clients once the membership holds the member's name.
func (m *member) seenSelf() {
	if info, ok := m.machine.members[m.id]; ok && info.name != "" && !m.serving {
		m.serving = true
		m.disk.everServed = true
	}
}

// merged returns a snapshot message with the current state, like etcd's: the snapshot on the
// disk may be older than the receiver's membership.
func (m *member) merged(msg *pb.Message) *pb.Message {
	term, err := m.disk.log.Term(m.applied)
	if err != nil || m.applied <= msg.GetSnapshot().GetMetadata().GetIndex() {
		return msg
	}
	msg = proto.Clone(msg).(*pb.Message)
	msg.Snapshot = &pb.Snapshot{
		Data:     m.w.pay(payload{state: m.machine.clone()}),
		Metadata: &pb.SnapshotMetadata{ConfState: m.conf, Index: new(m.applied), Term: new(term)},
	}
	return msg
}

// send passes messages to the network.
func (m *member) send(messages []*pb.Message) {
	for _, msg := range messages {
		to, ok := m.machine.members[msg.GetTo()]
		if !ok {
			to, ok = m.told[msg.GetTo()]
		}
		if !ok {
			continue
		}
		if msg.GetType() == pb.MsgSnap {
			msg = m.merged(msg)
		}
		latency := time.Millisecond + time.Duration(m.w.life.number("net", m.id, to.id)%2000)*time.Microsecond
		// Two logs that contradict each other reject each other's entries forever: each rejection makes
		// the leader send them again, and so does each heartbeat. One at a time is enough.
		pair := [2]uint64{m.id, to.id}
		if m.w.rolledBack && msg.GetReject() {
			latency += tick
		}
		rejects := m.w.rolledBack && msg.GetReject() && msg.GetType() == pb.MsgAppResp
		if rejects {
			if m.w.rejecting[pair] {
				continue
			}
			m.w.rejecting[pair] = true
		}
		var copying *member
		if msg.GetType() == pb.MsgSnap && m.w.copyTakes > 0 {
			if copying = m.w.memberAt(to.url); copying != nil {
				latency += m.w.copyTakes
				copying.receiving++
				m.w.underWay++
			}
		}
		m.w.after(latency, func() {
			p := m.w.memberAt(to.url)
			if rejects {
				delete(m.w.rejecting, pair)
			}
			if copying != nil {
				copying.receiving--
				m.w.underWay--
			}
			switch {
			case m.stopped && copying != nil:
			case copying != nil && p != copying || p == nil || p.id != to.id || p.clusterID != m.clusterID || !m.w.reachable(m.run.node.name, p.run.node.name) || !m.w.reachable(p.run.node.name, m.run.node.name):
				if !m.stopped && m.held == nil {
					m.guard(func() {
						m.node.ReportUnreachable(to.id)
						m.pump()
					})
				}
				if msg.GetType() == pb.MsgSnap {
					m.reportSnapshot(to.id, raft.SnapshotFailure)
				}
			case p.machine.removed[m.id]:
				m.stop("the member has been permanently removed from the cluster")
			case p.held != nil:
				if msg.GetType() == pb.MsgSnap {
					m.reportSnapshot(to.id, raft.SnapshotFailure)
				}
			default:
				// A member answers one that joined after its own log ends: the request names the
				// sender's URL (X-PeerURLs of etcd's rafthttp).
				if info, ok := m.machine.members[m.id]; ok {
					if p.told == nil {
						p.told = map[uint64]memberInfo{}
					}
					p.told[m.id] = info
				}
				p.guard(func() {
					_ = p.node.Step(msg)
					p.pump()
				})
				if msg.GetType() == pb.MsgSnap {
					m.reportSnapshot(to.id, raft.SnapshotFinish)
				}
			}
		})
	}
}

// reportSnapshot lets raft know how the sending of a snapshot ended, as etcd always does: until then, raft
// sends that member nothing more. While the disk hangs, the report waits.
func (m *member) reportSnapshot(to uint64, status raft.SnapshotStatus) {
	switch {
	case m.stopped:
	case m.held != nil:
		m.w.after(tick, func() { m.reportSnapshot(to, status) })
	default:
		m.guard(func() {
			m.node.ReportSnapshot(to, status)
			m.pump()
		})
	}
}

// propose proposes a normal entry.
func (m *member) propose(p payload) { m.submit(p, m.node.Propose) }

// reconfigure proposes a change of the membership.
func (m *member) reconfigure(kind pb.ConfChangeType, p payload) {
	m.submit(p, func(data []byte) error {
		return m.node.ProposeConfChange(&pb.ConfChange{Type: kind.Enum(), NodeId: new(p.change.id), Context: data})
	})
}

// submit proposes a payload to raft and notes who waits for it.
func (m *member) submit(p payload, into func(data []byte) error) {
	p.proposer = m
	data := m.w.pay(p)
	id := uint64(len(m.w.payloads) - 1)
	m.waiting[id] = true
	m.w.after(requestTimeout, func() { m.settle(id, rpctypes.ErrTimeout) })
	if m.held != nil {
		return
	}
	m.guard(func() {
		if err := into(data); err != nil {
			m.settle(id, rpctypes.ErrNoLeader)
			return
		}
		m.pump()
	})
}

// confirm calls back when the member has applied all writes acknowledged before.
func (m *member) confirm(then func(error)) {
	m.readNo++
	key := fmt.Sprintf("%x-%d-%d", m.id, m.startedAt.UnixNano(), m.readNo)
	m.reads[key] = &read{since: time.Now(), then: then}
	m.w.after(requestTimeout, func() {
		if m.reads[key] != nil {
			delete(m.reads, key)
			then(rpctypes.ErrTimeout)
		}
	})
	if m.held == nil {
		m.guard(func() {
			m.node.ReadIndex([]byte(key))
			m.pump()
		})
	}
}

// commits reports whether the member takes part in a quorum at this moment.
func (m *member) commits() bool {
	return m.agrees(func(p *member) bool { return p.held == nil && !p.disk.hung })
}

// confirms reports whether a read through the member succeeds: what /readyz of etcd asks. No
// such read needs a disk. A leader whose disk hangs confirms them until it has to write. A member that
// needs a copy of the database lacks what it would have to read.
func (m *member) confirms() bool {
	return m.agrees(func(p *member) bool { return p.held == nil }) && !m.needsCopy()
}

// needsCopy reports whether the member's leader sends it the database in place of entries.
func (m *member) needsCopy() bool {
	needs := false
	if l := m.w.memberAt(m.machine.members[m.lead].url); l != nil && l.leads() {
		l.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
			needs = needs || id == m.id && p.State == tracker.StateSnapshot
		})
	}
	return needs
}

// agrees reports whether the member, its leader and a quorum follow that leader, and are able.
func (m *member) agrees(able func(*member) bool) bool {
	w := m.w
	if m.stopped || !able(m) || m.lead == 0 {
		return false
	}
	var l *member
	if m.lead == m.id {
		l = m
	} else if l = w.memberAt(m.machine.members[m.lead].url); l == nil || l.id != m.lead || l.lead != l.id || !m.linkedTo(l) {
		return false
	}
	if !able(l) {
		return false
	}
	n, voters := 0, 0
	for id, info := range l.machine.members {
		if info.learner {
			continue
		}
		voters++
		p := w.memberAt(info.url)
		if p != nil && p.id == id && able(p) && (p == l || p.lead == l.id && l.linkedTo(p)) {
			n++
		}
	}
	return n >= etcd.Quorum(voters)
}

func (m *member) linkedTo(p *member) bool {
	return m.w.reachable(m.run.node.name, p.run.node.name) && m.w.reachable(p.run.node.name, m.run.node.name)
}

// connectedSince returns since when a peer has been connected; zero: it is not.
func (m *member) connectedSince(id uint64) time.Time {
	if id == m.id {
		return m.startedAt
	}
	p := m.w.memberAt(m.machine.members[id].url)
	if p == nil || p.id != id || !m.linkedTo(p) {
		return time.Time{}
	}
	since := m.startedAt
	for _, t := range []time.Time{p.startedAt, m.w.linked[pair(m.run.node.name, p.run.node.name)], m.w.linked[pair(p.run.node.name, m.run.node.name)]} {
		if t.After(since) {
			since = t
		}
	}
	began, other := uint64(m.startedAt.UnixNano()), uint64(p.startedAt.UnixNano()) // any number will do
	if m.startedAt.Sub(p.startedAt).Abs() < healthInterval && m.w.life.chance(unconnectedChance, "unconnected", m.disk.name, p.disk.name, began, other) {
		return time.Time{}
	}
	return since
}

// connected returns the number of voters that have been connected for etcd's HealthInterval.
func (m *member) connected() int {
	n := 0
	for _, id := range m.machine.voters() {
		if t := m.connectedSince(id); id == m.id || !t.IsZero() && time.Since(t) >= healthInterval {
			n++
		}
	}
	return n
}

func (m *member) startedVoters() (started, all int) {
	for _, id := range m.machine.voters() {
		all++
		if m.machine.members[id].name != "" {
			started++
		}
	}
	return started, all
}

// add adds a member, with the checks of --strict-reconfig-check.
func (m *member) add(url string, learner bool, then func(uint64, error)) {
	now := time.Now()
	info := memberInfo{id: memberID(url, "", &now), url: url, learner: learner}
	started, all := m.startedVoters()
	switch {
	case all == 1 && (started == 1 || learner):
	case !learner && started < etcd.Quorum(all+1):
		then(0, rpctypes.ErrMemberNotEnoughStarted)
		return
	case m.connected() < etcd.Quorum(all+1):
		then(0, rpctypes.ErrUnhealthy)
		return
	}
	kind := pb.ConfChangeAddNode
	if learner {
		kind = pb.ConfChangeAddLearnerNode
	}
	m.reconfigure(kind, payload{change: &info, then: func(err error) { then(info.id, err) }})
}

// remove removes a member.
func (m *member) remove(id uint64, then func(error)) {
	info, ok := m.machine.members[id]
	if !ok {
		then(rpctypes.ErrMemberNotFound)
		return
	}
	if !info.learner {
		started, all := m.startedVoters()
		if info.name != "" {
			started--
		}
		switch {
		case started < etcd.Quorum(all-1) || all == 1:
			then(rpctypes.ErrMemberNotEnoughStarted)
			return
		case m.connectedSince(id).IsZero():
		case m.connected()-1 < 1+(all-1)/2:
			then(rpctypes.ErrUnhealthy)
			return
		}
	}
	m.reconfigure(pb.ConfChangeRemoveNode, payload{change: &memberInfo{id: id}, then: then})
}

// promote gives a learner its vote. Only the leader knows whether the learner is ready.
func (m *member) promote(id uint64, then func(error)) {
	info, ok := m.machine.members[id]
	switch {
	case !ok:
		then(rpctypes.ErrMemberNotFound)
		return
	case !info.learner:
		then(rpctypes.ErrMemberNotLearner)
		return
	}
	if m.lead != m.id {
		l := m.w.memberAt(m.machine.members[m.lead].url)
		if l == nil || l.id != m.lead || l.lead != l.id || !m.linkedTo(l) || l.stopped || l.held != nil {
			then(rpctypes.ErrTimeout)
			return
		}
		l.promote(id, then)
		return
	}
	if m.held != nil {
		m.w.after(requestTimeout, func() { then(rpctypes.ErrTimeout) })
		return
	}
	var match, lead uint64
	m.node.WithProgress(func(pid uint64, _ raft.ProgressType, pr tracker.Progress) {
		switch pid {
		case id:
			match = pr.Match
		case m.id:
			lead = pr.Match
		}
	})
	started, all := m.startedVoters()
	if float64(match) < float64(lead)*0.9 {
		then(rpctypes.ErrMemberLearnerNotReady)
		return
	}
	if started+1 < etcd.Quorum(all+1) {
		then(rpctypes.ErrMemberNotEnoughStarted)
		return
	}
	m.reconfigure(pb.ConfChangeAddNode, payload{change: &info, promote: true, then: then})
}

// moveLeader transfers leadership.
func (m *member) moveLeader(to uint64, then func(error)) {
	info, ok := m.machine.members[to]
	if m.lead != m.id {
		then(rpctypes.ErrNotLeader)
		return
	}
	if !ok || info.learner || m.held != nil {
		then(rpctypes.ErrBadLeaderTransferee)
		return
	}
	m.guard(func() {
		m.node.TransferLeader(to)
		m.pump()
	})
	deadline := time.Now().Add(requestTimeout)
	var look func()
	look = func() {
		switch {
		case m.lead == to:
			then(nil)
		case m.stopped || time.Now().After(deadline):
			then(rpctypes.ErrTimeout)
		default:
			m.w.after(50*time.Millisecond, look)
		}
	}
	look()
}
