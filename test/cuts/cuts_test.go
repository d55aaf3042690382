//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cuts destroys most members of a real etcd under load, and has the operators recover what
// another one has. It needs no Kubernetes.
package cuts

import (
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/test/environment"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// At a random moment, two of three members lose their disks under load, or three of five. The etcd operator
// lists the ways out, a person chooses a survivor, the backup operator stores its data, and the containers of
// the first member restore that. Nothing is lost that the survivor had, the loss is what the status said, and
// no old member takes part in the new cluster.
//
// CUTS is how many, CUTS_FIRST the seed of the first, and CUTS_ETCD the only release, such as 3.6.
func TestWhatASurvivorHasComesBackExactly(t *testing.T) {
	releases := slices.DeleteFunc(slices.Clone(members.Releases(t)), func(r members.Release) bool {
		only := os.Getenv("CUTS_ETCD")
		return r.Minor() == "3.4" || only != "" && only != r.Minor()
	})
	if len(releases) == 0 {
		t.Fatal("there is no such release")
	}
	first, number := environment.Number(t, "CUTS_FIRST", 0), environment.Number(t, "CUTS", 3)
	for seed := first; seed < first+number; seed++ {
		release := releases[seed%uint64(len(releases))]
		t.Run(fmt.Sprintf("seed %d of %s", seed, release.Minor()), func(t *testing.T) {
			t.Parallel() // they mostly wait
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the same schedule again: CUTS_FIRST=%d CUTS=1 CUTS_ETCD=%s", seed, release.Minor())
				}
			})
			c := newCut(t, release, seed)
			c.live(t)
			c.strike(t)
			c.choose(t)
			c.checkStatus(t)
			c.restore(t)
			c.checkLoss(t)
			c.compare(t)
			c.checkOld(t)
			c.report(t)
		})
	}
}

// schedule is what a seed decides.
type schedule struct {
	writers int
	life    time.Duration // before the fault
	leads   bool          // whether the survivor leads before
	lag     time.Duration // for which the survivor is frozen before; 0: it is not
	gap     time.Duration // between the ends of the two others
	ends    bool          // whether the survivor ends as well, and starts again
	down    time.Duration // until then
	alone   time.Duration // for which the writers continue
	// floods is true if much is written while the survivor is frozen. Otherwise it receives most of that
	// afterwards, from the buffers of the network.
	floods bool
	// successor is true if another etcd operator takes over, which knows the status alone.
	successor bool
	size      int
}

func scheduleOf(seed uint64) schedule {
	rng := rand.New(rand.NewPCG(seed, 13))
	random := func(most int) time.Duration { return time.Duration(rng.IntN(most)) * time.Millisecond }
	s := schedule{
		writers: 2 + rng.IntN(7), life: time.Second + random(2000), leads: rng.IntN(2) == 0, lag: random(1500), gap: random(300),
		ends: rng.IntN(3) == 0, down: random(1000), alone: random(1000), successor: rng.IntN(3) == 0,
	}
	if rng.IntN(2) == 0 {
		s.lag = 0
	}
	if rng.IntN(2) == 0 {
		s.gap = 0
	}
	s.floods = s.lag > 0 && rng.IntN(3) > 0
	s.size = 3
	if rng.IntN(3) == 0 {
		s.size = 5
	}
	return s
}

// cut is a life of an etcd, its loss, and its recovery.
type cut struct {
	schedule
	seed    uint64
	release members.Release
	tls     *members.TLS // nil: none
	cluster *members.Cluster
	ops     *operators
	writers *writers
	truths  map[*members.Member]*members.Truth
	clients map[*members.Member]*clientv3.Client

	survivor, old *members.Member // old is destroyed for the operators, and returns
	name          string          // of the survivor
	// other is a second survivor, which nobody chooses; nil with three members. otherName is its name.
	other     *members.Member
	otherName string
	// restarted is the survivor that has ended too, and has started again; nil if none has.
	restarted *members.Member
	clusterID uint64
	// before is the revision that the survivor is known to have had while it was not alone.
	before int64
	recovery
	summary
}

// quick makes elections and the ends of leases fast.
var quick = []string{"--heartbeat-interval=50", "--election-timeout=500"}

func newCut(t *testing.T, release members.Release, seed uint64) *cut {
	t.Helper()
	c := &cut{
		schedule: scheduleOf(seed), seed: seed, release: release,
		truths: map[*members.Member]*members.Truth{}, clients: map[*members.Member]*clientv3.Client{},
	}
	var config *tls.Config
	if seed%2 == 1 {
		c.tls = members.NewTLS(t)
		config = c.tls.ClientConfig(t, "root")
	}
	c.cluster = release.Start(t, members.Options{Size: c.size, TLS: c.tls, Flags: quick})
	for _, m := range c.cluster.Members {
		c.clients[m] = c.cluster.Client(t, m)
		c.truths[m] = members.Watch(t, c.clients[m])
	}
	c.ops = startOperators(t, c.cluster, c.tls, config)
	return c
}

// live lets the writers write until the fault.
func (c *cut) live(t *testing.T) {
	t.Helper()
	c.writers = startWriters(t, c.cluster, c.seed, c.schedule.writers)
	time.Sleep(c.life)
	// The etcd operator has recorded a state by then.
	await(t, func() bool {
		r := c.ops.cluster(t).Status.Record
		return r != nil && r.Revision > 0
	}, func() string {
		return fmt.Sprintf("the etcd operator has recorded nothing: %+v", c.ops.cluster(t).Status)
	})
}

// strike takes most members and their disks away.
func (c *cut) strike(t *testing.T) {
	t.Helper()
	leader, followers := c.cluster.Leader(t)
	c.survivor = leader
	if !c.leads {
		c.survivor = followers[c.seed/2%2]
	}
	if c.size > 3 {
		c.other = followers[2]
	}
	status, err := c.clients[c.survivor].Status(t.Context(), c.survivor.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.clusterID = status.Header.ClusterId
	var lost []*members.Member
	for i, m := range c.cluster.Members {
		switch name := fmt.Sprintf("m%d", i); m {
		case c.survivor:
			c.name = name
		case c.other:
			c.otherName = name
		default:
			lost = append(lost, m)
		}
	}
	c.old = lost[c.seed/4%2]
	if c.lag > 0 {
		c.survivor.Freeze(t)
		time.Sleep(c.lag)
	}
	if c.floods {
		c.writers.flood(t, c.cluster.Client(t, lost...), c.seed)
		time.Sleep(3 * time.Second) // the etcd operator looks
	}
	for i, m := range lost {
		if i > 0 {
			time.Sleep(c.gap)
		}
		m.Kill(t)
	}
	if c.ends {
		c.survivor.Kill(t) // frozen or not
	} else if c.lag > 0 {
		c.survivor.Thaw(t)
	}
	for i, m := range c.cluster.Members {
		if !slices.Contains(lost, m) {
			continue
		}
		c.ops.losePod(t, fmt.Sprintf("m%d", i))
		if m != c.old {
			m.Destroy(t)
		}
	}
	c.before = c.truths[c.survivor].Last()
	if c.successor {
		c.ops.startCluster(t)
	}
	if c.ends {
		time.Sleep(c.down)
		c.survivor.Start(t)
		c.restarted = c.survivor
	}
	time.Sleep(c.alone)
	c.writers.end()
}
