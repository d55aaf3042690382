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
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

var (
	duration = flag.Duration("for", 5*time.Minute, "how long faults strike")
	seed     = flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the schedule of faults")
	report   = flag.String("report", "", "`file` to append a line about the run to")
)

const (
	// clientsEach is how many clients each cluster has.
	clientsEach = 4
	// recovery is how long the clusters may take to be as specified when no fault strikes
	// any more: a member that does not answer is given ten minutes.
	recovery = 15 * time.Minute
	// checking bounds the check of the history of one key.
	checking = time.Minute
)

// A storm is one run.
type storm struct {
	t       *testing.T
	n       *harness.Namespace
	rand    *rand.Rand
	targets []*target
	struck  map[string]int // faults by name
}

// A target is a cluster with its clients.
type target struct {
	*harness.Cluster
	size     int
	volumes  bool
	upgrades []string // versions, in order
	clients  *clients
}

func TestChaos(t *testing.T) {
	t.Logf("seed %d", *seed)
	s := &storm{t: t, n: harness.New(t), rand: rand.New(rand.NewPCG(*seed, 0)), struck: map[string]int{}} //nolint:gosec // the same for the same seed
	s.targets = []*target{
		{Cluster: s.n.CreateObject(s.spec("one", 1, true)), size: 1, volumes: true},
		{Cluster: s.n.CreateObject(s.spec("three", 3, false)), size: 3},
		{Cluster: s.n.CreateObject(s.spec("kept", 3, true)), size: 3, volumes: true},
	}
	for i, c := range s.targets {
		c.upgrades = []string{"3.7.3"}
		c.WaitSettled()
		c.clients = startClients(t.Context(), clientsEach, *seed+uint64(i), c.Client) //nolint:gosec // i is small
	}
	for end := time.Now().Add(*duration); time.Now().Before(end); {
		s.strike()
		s.pass(1, 20)
	}
	s.awaitCalm()
	for _, c := range s.targets {
		c.clients.end()
		s.verify(c)
	}
	s.tell()
}

// strike lets one fault strike.
func (s *storm) strike() {
	f, c := pick(s.rand, faults), pick(s.rand, s.targets)
	if f.fits != nil && !f.fits(c) {
		return
	}
	if f.calm {
		s.awaitCalm()
	}
	member := s.member(c)
	s.t.Logf("%s %s: %s of %s", time.Now().Format(time.TimeOnly), f.name, member.Name, c.Name)
	s.struck[f.name]++
	f.strike(s, c, member)
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

// member is one of the pods of a cluster that serve.
func (s *storm) member(c *target) *corev1.Pod {
	s.t.Helper()
	var serving []*corev1.Pod
	harness.Wait(s.t, "a member of "+c.Name+" that serves", recovery, func(context.Context) error {
		serving = slices.DeleteFunc(c.Pods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || !harness.Ready(p) })
		if len(serving) == 0 {
			return errors.New("no pod is ready")
		}
		return nil
	})
	return pick(s.rand, serving)
}

func (s *storm) nodes() []string {
	list, err := s.n.Kube.CoreV1().Nodes().List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("list nodes: %v", err)
	}
	var names []string
	for _, node := range list.Items {
		names = append(names, node.Name)
	}
	return names
}

// verify checks what the clients of a cluster were told. Each key is read once more: a
// write that is lost contradicts the history then.
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
	harness.Wait(s.t, "what the watch of "+c.Name+" was told", time.Minute, func(context.Context) error { return c.clients.watch.check(now) })
	c.clients.endWatch()
}

// read reads all keys.
func (s *storm) read(c *target) (map[string]written, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	resp, err := client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read all keys: %w", err)
	}
	now := map[string]written{}
	for _, kv := range resp.Kvs {
		now[string(kv.Key)] = written{string(kv.Value), kv.ModRevision}
	}
	return now, nil
}

// spec is a cluster of the version before the upgrades.
func (s *storm) spec(name string, size int, volumes bool) *v1beta2.EtcdCluster {
	cluster := &v1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta2.ClusterSpec{Size: size, Version: "3.6.16"}}
	if volumes {
		cluster.Spec.Pod = &v1beta2.PodPolicy{PersistentVolumeClaimSpec: &corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Mi")}},
		}}
	}
	return cluster
}

// tell logs what was done, and appends it to the report.
func (s *storm) tell() {
	operations, unknown, breaks := 0, 0, 0
	for _, c := range s.targets {
		all, without := c.clients.history.count()
		operations, unknown, breaks = operations+all, unknown+without, breaks+c.clients.watch.breaks
	}
	line := fmt.Sprintf("%s seed %d, %s: %d operations, %d without an answer, %d breaks of watches, faults %v, passed: %v",
		time.Now().UTC().Format(time.DateTime), *seed, *duration, operations, unknown, breaks, s.struck, !s.t.Failed())
	s.t.Log(line)
	if *report == "" {
		return
	}
	file, err := os.OpenFile(*report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintln(file, line); err != nil {
		s.t.Error(err)
	}
	if err := file.Close(); err != nil {
		s.t.Error(err)
	}
}

// pass waits for some seconds between two bounds.
func (s *storm) pass(least, most int) {
	time.Sleep(time.Duration(least+s.rand.IntN(most-least)) * time.Second)
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }
