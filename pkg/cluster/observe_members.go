// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/pkg/watchdog"
)

// statusTimeout bounds the status request to one member. All requests run at once, so that
// dead members cost a pass no more than this.
const statusTimeout = 2 * time.Second

// listTimeout bounds the linearizable reads of the membership, and listPatience how long the
// pass waits for the first member alone.
const listTimeout = 3 * time.Second

const listPatience = time.Second

// answer is one member's own report.
type answer struct {
	pod manifest.PodState
	// former is the endpoint of a member of an imported etcd, which has no pod here.
	former string
	conn   Member
	status *etcd.Status
	err    error
	// stalled is true if no read through it is confirmed.
	stalled bool
	// position is what it states with a confirmed read.
	position etcd.Position
}

// isOf reports whether an answer is that of a member, whose pod has this name.
func (a answer) isOf(m etcd.Member, pod string) bool {
	if a.former != "" {
		return pod == "" && a.status != nil && a.status.MemberID == m.ID
	}
	return pod != "" && a.pod.Name == pod
}

func (c *Cluster) observeMembers(ctx context.Context, o *plan.Observation) {
	answers := c.ask(ctx, o)
	c.seeTLS(o, slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.former != "" }))
	c.seeUser(o, answers)
	list := c.list(ctx, o, answers)
	findStalled(ctx, o, answers)
	c.seeReads(o, answers)
	c.rest.compare(answers)
	pods := podsOfMembers(o, list, answers)
	for i, m := range list {
		name := pods[i]
		state := plan.MemberState{Member: m, PodName: name, Pod: o.Pod(name), Volume: o.Volume(name)}
		if i := slices.IndexFunc(answers, func(a answer) bool { return a.isOf(m, name) }); i >= 0 {
			state.Err = answers[i].err
			switch s := answers[i].status; {
			case s != nil && s.MemberID == m.ID:
				state.Status, state.Stalled = s, answers[i].stalled
			case s != nil:
				state.Err = plan.ErrOtherMember
			}
		}
		o.Members = append(o.Members, state)
	}
	c.prove(ctx, o)
	c.judgeMembers(o)
	c.health.track(o)
	c.quorum.look(o)
	c.marks.look(o)
	c.unconfirmed.look(o)
	o.Mislabels = c.mislabels.learn(o)
	c.copies.look(ctx, o, c.etcd.CopiesDatabase)
	c.observeAuth(ctx, o)
	c.leaderless = leaderless(o, c.leaderless)
	o.LeaderlessSince = c.leaderless
	if o.Quorum && o.Outdated() {
		var err error
		if o.ClusterVersion, err = within(ctx, statusTimeout, c.change.ClusterVersion); err != nil {
			c.log.WithError(err).Debug("the cluster's version is not known")
		}
	}
}

// podsOfMembers returns the name of each member's pod; "" for one that the operator did not make. Somebody may
// have added a member with the host or the name of another one. The pod belongs to one of them alone: otherwise
// the operator would delete it with the other.
func podsOfMembers(o *plan.Observation, list []etcd.Member, answers []answer) []string {
	claim := func(m etcd.Member, pod string) int {
		stated := slices.ContainsFunc(answers, func(a answer) bool { return a.isOf(m, pod) && a.status != nil && a.status.MemberID == m.ID })
		switch {
		case stated:
			return 4
		case slices.Contains(m.PeerURLs, o.Names.PeerURL(pod)):
			return 3
		case o.Names.MemberAt(m.Host()) == pod:
			return 2
		}
		return 1
	}
	pods, holders := make([]string, len(list)), map[string]int{}
	for i, m := range list {
		pod := o.Names.MemberAt(m.Host())
		if pod == "" && (o.Pod(m.Name) != nil || o.Volume(m.Name) != nil) {
			pod = m.Name // somebody has changed its peer URL
		}
		if pod == "" {
			continue
		}
		if j, held := holders[pod]; held {
			if claim(m, pod) <= claim(list[j], pod) {
				continue
			}
			pods[j] = ""
		}
		pods[i], holders[pod] = pod, i
	}
	return pods
}

// ask asks all running members for their status at once.
func (c *Cluster) ask(ctx context.Context, o *plan.Observation) []answer {
	var answers []answer
	endpoints := map[etcd.Endpoint]bool{}
	for _, p := range o.Pods {
		if _, removed := c.deleted[p.UID]; removed || !mayAnswer(o, p) || p.IP == "" {
			continue
		}
		ep := etcd.Endpoint{URL: o.Names.ClientURL(p.Name), IP: p.IP}
		endpoints[ep] = true
		// An error here counts as no answer from this member: the pass asks the others, and
		// reports what it learns.
		conn, err := c.conn(o, ep)
		answers = append(answers, answer{pod: p, conn: conn, err: err})
	}
	c.etcd.Retain(endpoints)
	answers = append(answers, c.formerAnswers(o)...)

	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var asked sync.WaitGroup
	for i := range answers {
		if answers[i].err != nil {
			continue
		}
		asked.Go(func() {
			answers[i].err = watchdog.Guard(func() error {
				status, err := answers[i].conn.Status(ctx)
				if err == nil {
					answers[i].status = &status
				}
				return err
			})
		})
	}
	asked.Wait()
	for _, a := range answers {
		if c.importer.source != nil && a.status != nil {
			c.importer.conns[a.status.MemberID] = a.conn
		}
	}
	for i := range o.Pods {
		if slices.ContainsFunc(answers, func(a answer) bool { return a.status != nil && a.former == "" && a.pod.UID == o.Pods[i].UID }) {
			o.Pods[i].Answered()
		}
	}
	return answers
}

// mayAnswer reports whether etcd runs in a pod. A launcher starts etcd as soon as the pod's
// member was added, and the kubelet reports that late.
func mayAnswer(o *plan.Observation, p manifest.PodState) bool {
	return p.Running || p.Waiting && o.Recorded(p.Name)
}

// list lists the membership. It asks a member with a leader for the membership that the quorum
// has agreed on, the leader first. Without one, it uses the memory of the most advanced
// member.
func (c *Cluster) list(ctx context.Context, o *plan.Observation, answers []answer) []etcd.Member {
	c.change, c.otherVoters = nil, nil
	live := slices.DeleteFunc(slices.Clone(answers), func(a answer) bool { return a.status == nil || a.status.Learner })
	leads := func(a answer) int {
		switch a.status.LeaderID {
		case a.status.MemberID:
			return 0
		case 0:
			return 2
		default:
			return 1
		}
	}
	slices.SortStableFunc(live, func(a, b answer) int {
		return cmp.Or(cmp.Compare(leads(a), leads(b)), -cmp.Compare(a.status.RaftIndex, b.status.RaftIndex))
	})
	if members, through := agreed(ctx, o, slices.DeleteFunc(slices.Clone(live), func(a answer) bool { return leads(a) == 2 })); through != nil {
		o.Quorum = true
		c.change = through.conn
		for _, a := range live {
			if (a.pod.Name != through.pod.Name || a.former != through.former) && leads(a) < 2 {
				c.otherVoters = append(c.otherVoters, a.conn)
			}
		}
		testify(ctx, o, *through)
		return members
	}
	for _, a := range live {
		members, err := within(ctx, statusTimeout, a.conn.LocalMembers)
		if err == nil && belongs(o, members, a) {
			return members
		}
	}
	return nil
}

// agreed returns the membership that a quorum has agreed on, and the member that answered; nil
// without one. It asks the first member alone for a moment, then also all others. Members that
// were cut off still claim to know a leader, and their number must not prolong the pass.
func agreed(ctx context.Context, o *plan.Observation, candidates []answer) ([]etcd.Member, *answer) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	type reply struct {
		members []etcd.Member
		from    *answer
	}
	replies := make(chan reply, len(candidates))
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	ask := func(a *answer) {
		asking.Go(func() {
			var members []etcd.Member
			err := watchdog.Guard(func() (err error) {
				members, err = a.conn.Members(ctx)
				return err
			})
			if err != nil || !belongs(o, members, *a) {
				members = nil
			}
			replies <- reply{members, a}
		})
	}
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	asked := 0
	askNext := func() {
		if asked < len(candidates) {
			ask(&candidates[asked])
			asked++
		}
	}
	askNext()
	for answered := 0; answered < asked; {
		select {
		case r := <-replies:
			if answered++; r.members != nil {
				return r.members, r.from
			}
		case <-patience.C:
		}
		for asked < len(candidates) {
			askNext()
		}
	}
	return nil, nil
}

// belongs checks that a membership contains the member that sent it. Otherwise another
// cluster's etcd now has the address. During an import, all members are of the imported cluster: a seed
// that started before the import is of another one.
func belongs(o *plan.Observation, members []etcd.Member, a answer) bool {
	joins := o.Importing() && o.Status.Import.Begun() && !o.Copying()
	if joins && etcd.FormatID(a.status.ClusterID) != o.Status.Import.ClusterID {
		return false
	}
	return slices.ContainsFunc(members, func(m etcd.Member) bool {
		return m.ID == a.status.MemberID && (a.former != "" || o.Names.MemberAt(m.Host()) == a.pod.Name || m.Name == a.pod.Name)
	})
}

func within[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// healthLog remembers since when each member has been unhealthy.
type healthLog map[uint64]downtime

// downtime is since when a member has been unhealthy, and for how long of that time it was awaited: while
// there was a quorum, or its disk hung, and members accepted each other's certificates. looked is the last look, if the time until the next one counts.
type downtime struct {
	since   time.Time
	awaited time.Duration
	looked  time.Time
	hangs   bool
	// tries is the template and the image of its last pod.
	tries string
}

// follow restarts the time if the member's pod has got another template or image: somebody may have taken
// back the edit on which it did not start.
func (d downtime) follow(p *manifest.PodState) downtime {
	if p == nil {
		return d
	}
	tries := p.Template.Pod + " " + p.Admitted
	if d.tries != "" && d.tries != tries {
		d.awaited, d.looked = 0, time.Time{}
	}
	d.tries = tries
	return d
}

// look counts the time since the last look, if the member was awaited at both. A late look proves nothing
// about the time between. Only with a quorum, the operator asks whether a disk hangs. While members refuse each
// other, one that restarts can't return.
func (d downtime) look(o *plan.Observation, stalled bool) downtime {
	if o.Quorum {
		d.hangs = stalled
	}
	if !o.Quorum && !d.hangs || o.PeersRefuse() {
		d.looked = time.Time{}
		return d
	}
	if gap := o.Now.Sub(d.looked); gap <= longestBlink {
		d.awaited += gap
	}
	d.looked = o.Now
	return d
}

// track fills in DownSince and Awaited, and forgets removed members.
func (h healthLog) track(o *plan.Observation) {
	current := map[uint64]bool{}
	for i := range o.Members {
		m := &o.Members[i]
		current[m.ID] = true
		down, known := h[m.ID]
		switch {
		case m.Healthy() && (o.Quorum || !known):
			delete(h, m.ID)
			continue
		case !known:
			down.since = o.Now
		}
		down = down.follow(m.Pod).look(o, m.Stalled)
		h[m.ID] = down
		if !m.Healthy() { // without a quorum, nobody asked whether the member confirms reads
			m.DownSince, m.Awaited = down.since, down.awaited
		}
	}
	for id := range h {
		if len(o.Members) > 0 && !current[id] {
			delete(h, id)
		}
	}
}
