//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/stores"
)

var (
	duration = flag.Duration("for", 5*time.Minute, "how long faults strike")
	seed     = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the schedule of faults")
	report   = flag.String("report", "", "`file` to append a row about the run to")
	only     = flag.String("only", "", "let only faults strike whose names match a `pattern`")
)

const (
	// clientsEach is the number of each cluster's clients.
	clientsEach = 4
	// recovery bounds the time from the last fault until the clusters are as specified: the
	// operator replaces a silent member after ten minutes.
	recovery = 15 * time.Minute
	// checking bounds the check of the history of one key.
	checking = time.Minute
	// compactEvery is the time between two compactions. Without them, databases grow to their
	// quota.
	compactEvery = 2 * time.Minute
)

// A storm is one run.
type storm struct {
	t       *testing.T
	n       *harness.Namespace
	rand    *rand.Rand
	began   time.Time
	ended   time.Time // when the last fault ended; zero while faults go in
	targets []*target
	faults  []fault
	deck    []fault        // the next faults
	struck  map[string]int // faults by name
	store   *stores.MinIOServer
	backups int
}

// A target is a cluster with its clients.
type target struct {
	*harness.Cluster
	size    int
	volumes bool
	resizes bool
	version int // of versions
	clients *clients
}

func TestChaos(t *testing.T) {
	t.Logf("seed %d", *seed)
	s := &storm{t: t, faults: chosen(t), n: harness.New(t), rand: rand.New(rand.NewPCG(*seed, 0)), struck: map[string]int{}} // the same for the same seed
	s.targets = []*target{
		{Cluster: s.n.CreateObject(spec("one", 1, true)), size: 1, volumes: true},
		{Cluster: s.n.CreateObject(spec("three", 3, false)), size: 3, resizes: true},
		{Cluster: s.n.CreateObject(spec("kept", 3, true)), size: 3, volumes: true, resizes: true},
		{Cluster: s.n.CreateObject(spec("five", 5, false)), size: 5},
	}
	for i, c := range s.targets {
		id := c.WaitSettled()[0].ClusterID
		dial := func() (*clientv3.Client, error) { return c.ClientOf(id) }
		c.clients = startClients(t.Context(), clientsEach, *seed+uint64(i), c.Name, id, dial) // i is small
	}
	s.began = time.Now()
	defer s.report()
	compacted := s.began
	for time.Since(s.began) < *duration {
		s.strike()
		s.pass(1, 20)
		if time.Since(compacted) > compactEvery {
			s.compactAll()
			compacted = time.Now()
		}
	}
	s.ended = time.Now()
	s.awaitCalm()
	for _, c := range s.targets {
		c.clients.end()
		s.verify(c)
	}
}

// chosen returns the faults that the command line names.
func chosen(t *testing.T) []fault {
	t.Helper()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatalf("-only: %v", err)
	}
	list := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !pattern.MatchString(f.name) || *only == "" && *duration < f.least })
	if len(list) == 0 {
		t.Fatalf("-only %q: no fault is called so that strikes within %s", *only, *duration)
	}
	return list
}

// strike injects one fault.
func (s *storm) strike() {
	f := s.next()
	able := slices.DeleteFunc(slices.Clone(s.targets), func(c *target) bool { return f.fits != nil && !f.fits(c) })
	if len(able) == 0 {
		return
	}
	c := pick(s.rand, able)
	if f.calm {
		s.awaitCalm()
	}
	member := s.member(c)
	s.announce(f.name, member.Name+" of "+c.Name)
	f.strike(s, c, member)
}

// next returns the next fault. Each fault occurs once before one repeats, so that a short
// storm has many.
func (s *storm) next() fault {
	if len(s.deck) == 0 {
		s.deck = slices.Clone(s.faults)
		s.rand.Shuffle(len(s.deck), func(i, k int) { s.deck[i], s.deck[k] = s.deck[k], s.deck[i] })
	}
	f := s.deck[0]
	s.deck = s.deck[1:]
	return f
}

// announce notes a fault.
func (s *storm) announce(name, whom string) {
	s.t.Logf("%s %s: %s", time.Now().Format(time.TimeOnly), name, whom)
	s.struck[name]++
}

// missed removes a fault from the count.
func (s *storm) missed(name, why string) {
	s.t.Logf("not %s: %s", name, why)
	if s.struck[name]--; s.struck[name] == 0 {
		delete(s.struck, name)
	}
}

// awaitCalm waits until all clusters are as specified.
func (s *storm) awaitCalm() {
	s.t.Helper()
	for _, c := range s.targets {
		harness.Wait(s.t, c.Name+" as specified", recovery, func(ctx context.Context) error {
			_, err := c.Settled(ctx)
			return err
		})
	}
}

// member is a serving pod of a cluster.
func (s *storm) member(c *target) *corev1.Pod {
	s.t.Helper()
	var serving []*corev1.Pod
	harness.Wait(s.t, "a member of "+c.Name+" that serves", recovery, func(context.Context) error {
		// After a power loss, Kubernetes calls pods ready until the kubelet has looked.
		serving = slices.DeleteFunc(c.ready(), func(p *corev1.Pod) bool {
			_, err := harness.Process(p, pause)
			return err != nil
		})
		if len(serving) == 0 {
			return errors.New("no pod is ready")
		}
		return nil
	})
	return pick(s.rand, serving)
}

// ready returns the serving pods of a cluster, as last seen.
func (c *target) ready() []*corev1.Pod {
	return slices.DeleteFunc(c.Pods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || !harness.Ready(p) })
}

// verify checks the answers to a cluster's clients. It reads each key again: a lost write then
// contradicts the history.
func (s *storm) verify(c *target) {
	now, err := s.read(c)
	if err != nil {
		s.t.Errorf("%s: %v", c.Name, err)
		return
	}
	for _, key := range c.clients.history.keys() {
		c.clients.history.call(clientsEach, op{get, key, "", ""})(outcome{value: now[key].value})
	}
	if err := c.clients.history.check(checking); err != nil {
		s.t.Errorf("%s: %v", c.Name, err)
	}
	if err := s.with(s.t.Context(), c, c.clients.leases.check); err != nil {
		s.t.Errorf("%s: %v", c.Name, err)
	}
	harness.Wait(s.t, "the events of the watch of "+c.Name, time.Minute, func(context.Context) error { return c.clients.watch.check(now) })
	c.clients.endWatch()
}

// read reads all keys.
func (s *storm) read(c *target) (map[string]written, error) {
	now := map[string]written{}
	return now, s.with(s.t.Context(), c, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return fmt.Errorf("read all keys: %w", err)
		}
		for _, kv := range resp.Kvs {
			now[string(kv.Key)] = written{string(kv.Value), kv.ModRevision}
		}
		return nil
	})
}

// report logs the result, even of a failed run, and appends it to a file.
func (s *storm) report() {
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	sum := summary{began: s.began, struckFor: s.ended.Sub(s.began), seed: *seed, struck: s.struck, passed: !s.t.Failed()}
	breaks, leases := 0, 0
	for _, c := range s.targets {
		all, unknown := c.clients.history.count()
		sum.operations, sum.unknown = sum.operations+all, sum.unknown+unknown
		sum.clusters = append(sum.clusters, c.clients.history.availability(c.Name, c.clients.wrote()))
		breaks, leases = breaks+c.clients.watch.broke(), leases+c.clients.leases.count()
	}
	s.t.Logf("%s\n%d breaks of watches, %d leases", sum.row(), breaks, leases)
	if *report == "" {
		return
	}
	file, err := os.OpenFile(*report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Error(err)
		return
	}
	if _, err := fmt.Fprintln(file, sum.row()); err != nil {
		s.t.Error(err)
	}
	if err := file.Close(); err != nil {
		s.t.Error(err)
	}
}

// hold waits for some seconds while a fault lasts. Sometimes it injects another fault
// meanwhile.
func (s *storm) hold(least, most int) {
	half := s.between(least, most) / 2
	time.Sleep(half)
	if s.rand.IntN(3) == 0 {
		s.briefly()
	}
	time.Sleep(half)
}

// pass waits for some seconds between two bounds.
func (s *storm) pass(least, most int) { time.Sleep(s.between(least, most)) }

func (s *storm) between(least, most int) time.Duration {
	return time.Duration(least)*time.Second + time.Duration(s.rand.Int64N(int64(most-least)*int64(time.Second)))
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
