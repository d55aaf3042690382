// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/cluster"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// reach is an operator's client of the members, through the model's network.
type reach struct{ o *operator }

func (r reach) Conn(ep etcd.Endpoint) (cluster.Member, error) { return way{r.o, ep}, nil }
func (reach) Retain(map[etcd.Endpoint]bool)                   {}
func (reach) SetCredentials(etcd.Credentials)                 {}
func (reach) SetTLS(*tls.Config)                              {}
func (reach) Close()                                          {}

// CopiesDatabase asks the listener for metrics, which every process has.
func (r reach) CopiesDatabase(ctx context.Context, address string) (bool, error) {
	ip, _, _ := strings.Cut(address, ":")
	return asked(ctx, way{r.o, etcd.Endpoint{IP: ip}}, "receives", true, func(m *member, reply func(bool, error)) {
		reply(m.receiving > 0, nil)
	})
}

var errLeads = errors.New("it knows a leader")

// NotServing asks the listener for metrics for what the member holds.
func (r reach) NotServing(ctx context.Context, address string) (etcd.Status, error) {
	ip, _, _ := strings.Cut(address, ":")
	return asked(ctx, way{r.o, etcd.Endpoint{IP: ip}}, "metrics", true, func(m *member, reply func(etcd.Status, error)) {
		if m.lead != 0 {
			reply(etcd.Status{}, errLeads)
			return
		}
		reply(etcd.Status{
			MemberID: m.id, Version: m.version, Learner: m.machine.members[m.id].learner,
			RaftIndex: m.applied, RaftApplied: m.applied, Revision: m.machine.revision,
		}, nil)
	})
}

// way is a connection to one address.
type way struct {
	o  *operator
	ep etcd.Endpoint
}

// at is the address of the connection: that of a pod, or the URL of a former member.
func (c way) at() string { return cmp.Or(c.ep.IP, c.ep.URL) }

var errRefused = errors.New("connection refused")

type outcome[T any] struct {
	value T
	err   error
}

// asked asks the member at an address.
func asked[T any](ctx context.Context, c way, what string, early bool, do func(*member, func(T, error))) (T, error) {
	w := c.o.w
	cl := &call{actor: c.o, key: c.o.name + " etcd " + what + " " + c.at()}
	cl.do = func(reply func(any)) {
		w.checks.etcdCalls++
		run := w.addresses[c.at()]
		if run == nil || !run.node.up || !w.reachable(c.o.place, run.node.name) || !w.reachable(run.node.name, c.o.place) {
			return // no member answers
		}
		m := run.proc
		var none T
		switch {
		case m == nil || m.stopped || !m.serving && !early:
			reply(outcome[T]{none, errRefused})
		default:
			do(m, func(v T, err error) {
				w.note(fmt.Sprintf("%s %v", cl.key, err))
				reply(outcome[T]{v, err})
			})
		}
	}
	answer, err := w.ask(ctx, cl)
	var none T
	switch answer := answer.(type) {
	case outcome[T]:
		return answer.value, answer.err
	case error:
		return none, answer
	}
	return none, fmt.Errorf("%s: %w", what, err)
}

// confirmed asks for a result that only a member with a vote and a quorum returns.
func confirmed[T any](ctx context.Context, c way, what string, do func(*member, func(T, error))) (T, error) {
	return asked(ctx, c, what, false, func(m *member, reply func(T, error)) {
		if info := m.machine.members[m.id]; info.learner {
			var none T
			reply(none, rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner))
			return
		}
		do(m, reply)
	})
}

func (c way) Status(ctx context.Context) (etcd.Status, error) {
	return asked(ctx, c, "status", false, func(m *member, reply func(etcd.Status, error)) {
		size := int64(20480)
		if m.w.copyTakes > 0 {
			size = 1 << 30
		}
		reply(etcd.Status{
			MemberID: m.id, ClusterID: m.clusterID, LeaderID: m.lead, Version: m.version,
			Learner: m.machine.members[m.id].learner, DBSize: size, DBInUse: size,
			RaftIndex: m.node.BasicStatus().HardState.GetCommit(), RaftApplied: m.applied, Revision: m.machine.revision,
		}, nil)
	})
}

func (c way) Commits(ctx context.Context) (etcd.Position, error) {
	position, err := confirmed(ctx, c, "read", func(m *member, reply func(etcd.Position, error)) {
		m.confirm(func(err error) {
			if err != nil {
				reply(etcd.Position{}, err)
				return
			}
			c.o.w.checks.conduct.confirms(m)
			reply(etcd.Position{
				ClusterID: m.clusterID, MemberID: m.id, Term: m.node.BasicStatus().HardState.GetTerm(), Revision: m.machine.revision,
			}, nil)
		})
	})
	return position, err // no refusal in a life shows that a quorum has answered
}

func (c way) Members(ctx context.Context) ([]etcd.Member, error) {
	return confirmed(ctx, c, "members", func(m *member, reply func([]etcd.Member, error)) {
		m.confirm(func(err error) {
			if err != nil {
				reply(nil, err)
				return
			}
			reply(m.list(), nil)
		})
	})
}

func (c way) LocalMembers(ctx context.Context) ([]etcd.Member, error) {
	return confirmed(ctx, c, "local members", func(m *member, reply func([]etcd.Member, error)) { reply(m.list(), nil) })
}

func (m *member) list() []etcd.Member {
	var list []etcd.Member
	for _, id := range m.machine.ids() {
		info := m.machine.members[id]
		list = append(list, etcd.Member{ID: id, Name: info.name, PeerURLs: []string{info.url}, Learner: info.learner})
	}
	return list
}

func (c way) ClusterVersion(ctx context.Context) (etcd.Version, error) {
	return confirmed(ctx, c, "version", func(m *member, reply func(etcd.Version, error)) {
		var lowest etcd.Version
		for i, id := range m.machine.voters() {
			p := m.w.memberAt(m.machine.members[id].url)
			if p == nil {
				p = m
			}
			v, err := etcd.ParseVersion(p.version)
			if err == nil && (i == 0 || v.LT(lowest.Version)) {
				lowest = v
			}
		}
		lowest.Patch = 0
		reply(lowest, nil)
	})
}

func (c way) AddMember(ctx context.Context, peerURL string, learner bool) (etcd.Member, error) {
	return confirmed(ctx, c, "add "+peerURL, func(m *member, reply func(etcd.Member, error)) {
		c.o.w.narrate(c.o.name, "adds %s (learner: %t)", peerURL, learner)
		m.add(peerURL, learner, func(id uint64, err error) {
			reply(etcd.Member{ID: id, PeerURLs: []string{peerURL}, Learner: learner}, err)
		})
	})
}

func (c way) PromoteMember(ctx context.Context, id uint64) error {
	_, err := confirmed(ctx, c, fmt.Sprintf("promote %x", id), func(m *member, reply func(bool, error)) {
		c.o.w.checks.promotes(m, id)
		c.o.w.imports.promotes(m, id)
		m.promote(id, func(err error) {
			if err == nil {
				c.o.w.narrate(c.o.name, "promoted %s", c.o.w.nameOf(m, id))
			}
			if errors.Is(err, rpctypes.ErrMemberNotLearner) {
				err = nil
			}
			reply(true, err)
		})
	})
	return err
}

func (c way) RemoveMember(ctx context.Context, id uint64) error {
	_, err := confirmed(ctx, c, fmt.Sprintf("remove %x", id), func(m *member, reply func(bool, error)) {
		c.o.w.narrate(c.o.name, "removes %s", c.o.w.nameOf(m, id))
		c.o.w.imports.removes(m, id)
		c.o.w.checks.removes(c.o, m, id)
		c.o.w.checks.parts(c.o, m, id)
		m.remove(id, func(err error) {
			if err != nil {
				c.o.w.narrate("etcd", "refuses to remove %s: %v", c.o.w.nameOf(m, id), err)
			}
			if errors.Is(err, rpctypes.ErrMemberNotFound) {
				err = nil
			}
			reply(true, err)
		})
	})
	return err
}

func (w *world) nameOf(m *member, id uint64) string {
	info := m.machine.members[id]
	if info.url == "" {
		return fmt.Sprintf("member %x", id)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(info.url, "http://"), ".")
	return fmt.Sprintf("%s (%x)", host, id)
}

func (c way) MoveLeader(ctx context.Context, to uint64) error {
	_, err := confirmed(ctx, c, fmt.Sprintf("move leader to %x", to), func(m *member, reply func(bool, error)) {
		m.moveLeader(to, func(err error) { reply(true, err) })
	})
	return err
}

// AdvanceLog writes a single entry: the number matters to nobody here.
func (c way) AdvanceLog(ctx context.Context, _ int) error {
	_, err := confirmed(ctx, c, "advance log", func(m *member, reply func(bool, error)) {
		m.propose(payload{then: func(err error) { reply(true, err) }})
	})
	return err
}

func (c way) AuthEnabled(context.Context) (bool, error) { return false, nil }

func (c way) EnableAuth(context.Context, string) error { return nil }

func (c way) DisableAuth(context.Context) error { return nil }

func (c way) ChangePassword(context.Context, etcd.Credentials) error { return nil }

func (c way) Disarm(context.Context, etcd.Alarm) error { return nil }

// Raise is for copies, of which no life has one.
func (c way) Raise(context.Context, etcd.Alarm) error { return errors.New("no alarms are modelled") }

func (c way) RefusesWrites(context.Context) (bool, error) {
	return false, errors.New("no alarms are modelled")
}
