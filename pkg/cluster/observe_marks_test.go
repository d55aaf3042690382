// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// marked is a cluster of two members. etcd has refused the removal of b, which the record marks.
type marked struct {
	single

	members fakeMembers
}

func newMarked(t *testing.T) marked {
	t.Helper()
	obj := testCluster()
	obj.Spec.Size, obj.Status = 2, runningStatus()
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, obj)
	members := fakeMembers{}
	members.join(t, w, "a", "b")
	members["a"].removal = errors.New("etcdserver: unhealthy cluster")
	m := marked{single{w.cluster(obj), w, clock, members["a"]}, members}
	m.resize(1)
	m.passes(t, time.Minute)
	if !m.marks(t) {
		t.Fatalf("the record does not mark b; the last step is %s", m.lastStep)
	}
	return m
}

func (m marked) resize(size int) {
	m.take(m.world.edit(func(obj *api.EtcdCluster) { obj.Spec.Size = size }))
}

// passes makes passes for some time. The steps of some fail.
func (m marked) passes(t *testing.T, d time.Duration) {
	t.Helper()
	for range d / (10 * time.Second) {
		m.clock.Step(10 * time.Second)
		_, _ = m.pass(t.Context())
		m.world.watch()
	}
}

func (m marked) marks(t *testing.T) bool {
	t.Helper()
	for _, r := range m.world.etcdCluster().Status.Record.Members {
		if r.Name == "b" {
			return r.Removing
		}
	}
	t.Fatal("b is not on record")
	return false
}

func TestTheMarkOfAMemberThatStaysIsTakenBack(t *testing.T) {
	m := newMarked(t)
	m.resize(2)
	if m.passes(t, 9*time.Minute); !m.marks(t) {
		t.Error("the removal may still be committed, and the mark is gone")
	}
	if m.passes(t, 2*time.Minute); m.marks(t) {
		t.Error("nobody removes b any more, and the record marks it")
	}
	m.resize(1)
	if m.passes(t, time.Minute); !m.marks(t) {
		t.Error("the next removal has no mark")
	}
}

func TestAMarkLastsAsLongAsTheRemovalIsTried(t *testing.T) {
	m := newMarked(t)
	if m.passes(t, time.Hour); !m.marks(t) {
		t.Error("the mark is gone")
	}
}

// A member that hangs may send what it was asked for before. Nobody knows what became of the
// membership while the operator did not look.
func TestAMarkLastsWhileAMemberIsSilent(t *testing.T) {
	for name, disturb := range map[string]func(*testing.T, marked){
		"a member hangs": func(t *testing.T, m marked) {
			t.Helper()
			m.members["b"].refusal = errors.New("timeout")
			m.passes(t, 20*time.Second)
			m.members["b"].refusal = nil
		},
		"the operator does not look": func(_ *testing.T, m marked) { m.clock.Step(5 * time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMarked(t)
			m.resize(2)
			m.passes(t, 8*time.Minute)
			disturb(t, m)
			if m.passes(t, 9*time.Minute); !m.marks(t) {
				t.Error("the mark is gone")
			}
			if m.passes(t, 2*time.Minute); m.marks(t) {
				t.Error("the mark stays")
			}
		})
	}
}
