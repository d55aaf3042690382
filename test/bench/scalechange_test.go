//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// deathsOf is how many members die, one after another.
	deathsOf = 5
	// editsOf is how many clusters get an edit while no operator runs.
	editsOf = 10
	// editLabel is the label that the edit adds to pods.
	editLabel = "bench-edited"
	// leaseOf is the Lease of the operators of a namespace.
	leaseOf = "etcd-operator"
	// scrapePeriod is the time between two looks at the metrics. Those of 1,000 clusters are
	// large.
	scrapePeriod = 500 * time.Millisecond
)

// newPatch returns another version of etcd for each number. The members are stand-ins, so no image
// has to exist.
func newPatch(i int) string { return fmt.Sprintf("3.6.%d", 16+i) }

// upgradeAll moves all clusters to another version at the same time.
func (b *bench) upgradeAll(operator outsideOperator, count int, version string) upgradeCost {
	b.t.Helper()
	operator.peakFromNow(b.t)
	begin, requests, processor := time.Now(), total(b.requests()), operator.processor(b.t)
	b.editClusters(count, count, map[string]any{"version": version})
	b.waitReady(count, version)
	return upgradeCost{
		took: time.Since(begin), requests: total(b.requests()) - requests,
		processor: operator.processor(b.t) - processor, peak: operator.peak(b.t),
	}
}

// editClusters edits the specs of some of count clusters, evenly spread.
func (b *bench) editClusters(some, count int, spec map[string]any) {
	b.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		b.t.Fatal(err)
	}
	b.together(some, func(ctx context.Context, i int) error {
		_, err := b.n.EtcdClusters.EtcdV1beta2().EtcdClusters(b.n.Name).Patch(ctx, fmt.Sprint("c", i*count/some), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

// memberDeaths measures how long a cluster of three members takes to replace one whose pod is gone,
// beside the other clusters. The cluster exists only for that.
func (b *bench) memberDeaths(count int, version string) []time.Duration {
	b.t.Helper()
	cluster := b.n.CreateObject(&v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("three", count)},
		Spec: v1beta2.ClusterSpec{
			Size: 3, Version: version,
			Pod: &v1beta2.PodPolicy{NodeSelector: map[string]string{simulatedLabel: b.n.Name}},
		},
	})
	cluster.WaitSettled()
	var took []time.Duration
	for range deathsOf {
		b.pause(settleTime)
		follower := cluster.Follower()
		begin := time.Now()
		b.n.DeletePod(follower)
		harness.Wait(b.t, "replacement of "+follower.Name, harness.Settle, func(ctx context.Context) error {
			_, err := cluster.Settled(ctx, follower)
			return err
		})
		took = append(took, time.Since(begin))
		cluster.WaitSettled(follower)
	}
	cluster.Delete()
	cluster.WaitGone(harness.Settle)
	return took
}

// failover kills the operator while another one is a standby, and returns the other one once it cares
// for all clusters: it has passed over each and found it available, and has carried out edits made
// just after the kill.
func (b *bench) failover(operator outsideOperator, program *outsideProgram, count int) (outsideOperator, failoverCost) {
	b.t.Helper()
	next := program.start(b.t)
	if says, err := next.get(b.t.Context(), "/readyz"); err != nil || !strings.Contains(says, "standing by") {
		b.t.Fatalf("the second operator is no standby: %s, %v", says, err)
	}
	requests := total(b.requests())
	begin := time.Now()
	operator.kill(b.t)
	edited := fmt.Sprint(count)
	edits := min(count, editsOf)
	b.editClusters(edits, count, map[string]any{"pod": map[string]any{"labels": map[string]string{editLabel: edited}}})
	var cost failoverCost
	harness.Wait(b.t, next.name+" leads", harness.Settle, func(ctx context.Context) error {
		lease, err := b.n.Kube.CoordinationV1().Leases(b.n.Name).Get(ctx, leaseOf, metav1.GetOptions{})
		if err == nil && (lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != next.name) {
			err = errors.New("the Lease is that of another one")
		}
		return err
	})
	cost.leads = time.Since(begin)
	for {
		metrics, err := next.get(b.t.Context(), "/metrics")
		if err != nil {
			b.t.Fatal(err)
		}
		pods, err := b.n.Kube.CoreV1().Pods(b.n.Name).List(b.t.Context(), metav1.ListOptions{LabelSelector: editLabel + "=" + edited, ResourceVersion: "0"})
		if err != nil {
			b.t.Fatal(err)
		}
		available := availableClusters(metrics)
		if cost.cares = time.Since(begin); available == count && len(pods.Items) == edits {
			break
		}
		if cost.cares > harness.Settle {
			b.t.Fatalf("%s after the kill, the operator has found %d of %d clusters available, and has carried out %d of %d edits", cost.cares, available, count, len(pods.Items), edits)
		}
		b.pause(scrapePeriod)
	}
	cost.requests = total(b.requests()) - requests
	return next, cost
}

// availableClusters counts the clusters that an operator has found available in a pass.
func availableClusters(metrics string) int {
	n := 0
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "etcd_operator_cluster_available{") && strings.HasSuffix(line, "} 1\n") {
			n++
		}
	}
	return n
}
