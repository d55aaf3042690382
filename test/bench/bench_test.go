//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	etcd35 = "3.5.35"
	etcd36 = "3.6.16"
	etcd37 = "3.7.3"
)

var (
	rounds   = flag.Int("rounds", 5, "how often each thing is measured")
	clusters = flag.Int("clusters", 20, "clusters of one member that memory is measured with")
	idle     = flag.Duration("idle", 2*time.Minute, "how long requests of an idle operator are counted")
	trace    = flag.Bool("trace", false, "print what happened during each measurement")
	dns      = flag.String("dns", "", "how the local Kubernetes keeps answers of its DNS")
	document = flag.Bool("write", false, "write the result into doc/benchmarks.md")
)

// settleTime passes before each measurement. etcd counts a member as started after five
// seconds of connections, and refuses membership changes before. A cluster in use has passed
// that time.
const settleTime = 6 * time.Second

// TestBench measures everything in turns, so that a slow phase of the machine affects all
// measurements.
func TestBench(t *testing.T) {
	times, err := timesOf(*dns)
	if *document && err != nil {
		t.Fatal(err)
	}
	n := harness.NewQuiet(t)
	b := &bench{t: t, n: n}
	for round := range *rounds {
		t.Logf("--- round %d of %d", round+1, *rounds)
		b.unitU(round)
		b.unitS(round)
		b.life(round, etcd36, etcd37)
		b.life(round, etcd35, etcd36)
	}
	report := b.table.String() + "\n" + b.idle()
	fmt.Printf("\n%s\n%s\n", machine(t, n), report)
	if *document {
		if err := write(filepath.Join(n.Root, "doc", "benchmarks.md"), times, machine(t, n)+"\n"+report); err != nil {
			t.Error(err)
		}
	}
}

type bench struct {
	t     *testing.T
	n     *harness.Namespace
	table table
}

// measure notes the time from act's write until check finds nothing missing.
func (b *bench) measure(name string, target aim, act func(), check func(context.Context) error) {
	b.t.Helper()
	start := time.Now()
	act()
	harness.Wait(b.t, name, harness.Settle, check)
	b.table.add(name, target, time.Since(start))
	if *trace {
		b.t.Log("\n" + strings.Join(b.n.Timeline(start), "\n"))
	}
}

func (b *bench) unitU(round int) {
	b.t.Helper()
	pods := b.n.Kube.CoreV1().Pods(b.n.Name)
	name := fmt.Sprintf("bare-%d", round)
	b.measure("U: one bare etcd pod", aim{}, func() {
		if _, err := pods.Create(b.t.Context(), barePod(name), metav1.CreateOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}, ready(b.n, name, 1))
	if err := pods.Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	harness.Wait(b.t, "bare pod gone", harness.Settle, gone(b.n, name))
}

func (b *bench) unitS(round int) {
	b.t.Helper()
	ctx, kube := b.t.Context(), b.n.Kube
	name := fmt.Sprintf("static-%d", round)
	service, set := staticMembers(name, b.n.Name)
	b.measure("S: StatefulSet of three static members", aim{}, func() {
		if _, err := kube.CoreV1().Services(b.n.Name).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			b.t.Fatal(err)
		}
		if _, err := kube.AppsV1().StatefulSets(b.n.Name).Create(ctx, set, metav1.CreateOptions{}); err != nil {
			b.t.Fatal(err)
		}
	}, ready(b.n, name, 3))
	rest(b.t)
	b.restartEach(name, etcd37)
	if err := kube.AppsV1().StatefulSets(b.n.Name).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	if err := kube.CoreV1().Services(b.n.Name).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	harness.Wait(b.t, "static members gone", harness.Settle, gone(b.n, name))
}

// life measures a cluster from its creation to an upgrade. A cluster of three members can't be
// faster than S, and one member not faster than U.
func (b *bench) life(round int, version, next string) {
	b.t.Helper()
	var cluster *harness.Cluster
	// what names the change and the version, for a readable table.
	change := func(what string, target aim, act func(), gone ...*corev1.Pod) {
		b.t.Helper()
		b.measure(fmt.Sprintf(what, version), target, act, func(ctx context.Context) error {
			_, err := cluster.Settled(ctx, gone...)
			return err
		})
		cluster.WaitSettled(gone...) // including terminating pods
		rest(b.t)
	}
	create := aim{1.6, "S"}
	if version == etcd35 {
		create.times = 2
	}
	change("create 3 members of %s", create, func() {
		cluster = b.n.CreateObject(&v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("etcd-%d", round)},
			Spec:       v1beta2.ClusterSpec{Size: 3, Version: version},
		})
	})
	follower := cluster.Follower()
	change("replace a force-deleted follower, %s", aim{1.3, "U"}, func() { b.n.DeletePod(follower) }, follower)
	leader := cluster.Leader()
	change("replace a force-deleted leader, %s", aim{1.7, "U"}, func() { b.n.DeletePod(leader) }, leader)
	change("grow from 3 to 5, %s", aim{1.7, "U"}, func() { cluster.Resize(5) })
	change("shrink from 5 to 3, %s", aim{0.2, "U"}, func() { cluster.Resize(3) })
	change("upgrade 3 members from %s to "+next, aim{2, "U"}, func() { cluster.SetVersion(next) })
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
}

// rest is a pause of settleTime.
func rest(t *testing.T) {
	select {
	case <-time.After(settleTime):
	case <-t.Context().Done():
	}
}

// machine describes the machine of the measurements, and their number of rounds.
func machine(t *testing.T, n *harness.Namespace) string {
	t.Helper()
	return fmt.Sprintf("%s %d rounds.\n", oneRound(t, n), *rounds)
}

// oneRound describes the machine of measurements without rounds.
func oneRound(t *testing.T, n *harness.Namespace) string {
	t.Helper()
	version, err := n.Kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := n.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("Measured on %s: %s, Kubernetes %s with %d nodes on this one machine, DNS %s. Load average at the end: %.14s.",
		time.Now().UTC().Format(time.DateOnly), cpu(t), version.GitVersion, len(nodes.Items), *dns, load)
}
