//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

var together = flag.String("together", "20,100", "how many clusters begin at once")

// allStarted bounds the time for which many pods start on a slow machine.
const allStarted = 15 * time.Minute

// TestAtOnce measures how long many clusters of one member take that begin together, in turns with
// as many bare etcd pods.
func TestAtOnce(t *testing.T) {
	n := harness.NewQuiet(t)
	var report strings.Builder
	for text := range strings.SplitSeq(*together, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count < 1 {
			t.Fatalf("-together %s: want numbers, separated by commas", *together)
		}
		b := &bench{t: t, n: n}
		for round := range *rounds {
			t.Logf("--- %d, round %d of %d", count, round+1, *rounds)
			b.bareAtOnce(count)
			b.clustersAtOnce(count)
		}
		fmt.Fprintf(&report, "%s\n", b.table.String())
	}
	text := machine(t, n) + "\n" + report.String()
	fmt.Printf("\n%s\n", text)
	if *document {
		if err := write(filepath.Join(n.Root, "doc", "benchmarks.md"), atOnce, text); err != nil {
			t.Error(err)
		}
	}
}

func (b *bench) bareAtOnce(count int) {
	b.t.Helper()
	pods := b.n.Kube.CoreV1().Pods(b.n.Name)
	start := time.Now()
	b.together(count, func(ctx context.Context, i int) error {
		pod := barePod(fmt.Sprint("bare-", i))
		pod.Labels["unit"] = "bare"
		_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	harness.Wait(b.t, fmt.Sprintf("%d bare pods", count), allStarted, ready(b.n, "bare", count))
	b.table.add(fmt.Sprintf("B: %d bare etcd pods", count), aim{}, time.Since(start))
	if err := pods.DeleteCollection(b.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "unit=bare"}); err != nil {
		b.t.Fatal(err)
	}
	harness.Wait(b.t, "bare pods gone", allStarted, gone(b.n, "bare"))
	rest(b.t)
}

func (b *bench) clustersAtOnce(count int) {
	b.t.Helper()
	clusters := b.n.EtcdClusters.EtcdV1beta2().EtcdClusters(b.n.Name)
	start := time.Now()
	b.together(count, func(ctx context.Context, i int) error {
		_, err := clusters.Create(ctx, &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)},
			Spec:       v1beta2.ClusterSpec{Size: 1, Version: etcd36},
		}, metav1.CreateOptions{})
		return err
	})
	harness.Wait(b.t, fmt.Sprintf("%d clusters", count), allStarted, func(ctx context.Context) error { return allReady(ctx, b.n, count, etcd36) })
	b.table.add(fmt.Sprintf("%d clusters of one member", count), aim{1.1, "B"}, time.Since(start))
	if err := clusters.DeleteCollection(b.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		b.t.Fatal(err)
	}
	harness.Wait(b.t, "clusters gone", allStarted, func(context.Context) error {
		for _, pod := range b.n.Pods() {
			if pod.Labels["app"] == "etcd" {
				return fmt.Errorf("pod %s is there", pod.Name)
			}
		}
		return nil
	})
	rest(b.t)
}

// together makes count objects as fast as the API server takes them.
func (b *bench) together(count int, create func(context.Context, int) error) {
	b.t.Helper()
	creating, ctx := errgroup.WithContext(b.t.Context())
	creating.SetLimit(20)
	for i := range count {
		creating.Go(func() error { return create(ctx, i) })
	}
	if err := creating.Wait(); err != nil {
		b.t.Fatalf("create %d objects: %v", count, err)
	}
}
