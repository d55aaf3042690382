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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

var counts = flag.String("counts", "100,300,1000", "numbers of clusters, in rising order, that -scale measures")

// resting passes between the start of clusters and the measurement of their rest. The runtime
// returns memory in that time.
const resting = 90 * time.Second

// TestScale measures the operator with many clusters of one member. Their pods and members are
// simulated. The operator is a process of its own, so that its costs are its own. After each failover,
// another process is the operator.
func TestScale(t *testing.T) {
	n := harness.NewNamespace(t)
	b := &bench{t: t, n: n}
	for i, kind := range kinds {
		b.createFlowSchema(kind.name, int32(10+i), kind.verbs, kind.groups, kind.resources)
	}
	startNode(t, n)
	program := buildOperator(t, n)
	operator := program.start(t)
	report := &scaleReport{none: b.restCost(operator)}
	made, version := 0, newPatch(0)
	for text := range strings.SplitSeq(*counts, ",") {
		count, err := strconv.Atoi(text)
		if err != nil || count <= made {
			t.Fatalf("-counts %s: want rising numbers, separated by commas", *counts)
		}
		step := scaleStep{clusters: count, added: count - made}
		begin, before := time.Now(), total(b.requests())
		b.createClusters(made, count, version)
		b.waitReady(count, version)
		step.ready, step.starting = time.Since(begin), total(b.requests())-before
		made = count
		step.rest = b.restCost(operator)
		version = newPatch(len(report.steps) + 1)
		step.upgrade = b.upgradeAll(operator, count, version)
		step.deaths = b.memberDeaths(count, version)
		operator, step.failover = b.failover(operator, program, count)
		report.steps = append(report.steps, step)
		t.Logf("after %d clusters:\n%s", count, report)
	}
	text := oneRound(t, n) + "\n\n" + report.String()
	fmt.Printf("\n%s\n", text)
	if *document {
		if err := write(filepath.Join(n.Root, "doc", "benchmarks.md"), manyClusters, text); err != nil {
			t.Error(err)
		}
	}
}

// restCost measures an operator that has nothing to do.
func (b *bench) restCost(operator outsideOperator) restCost {
	b.t.Helper()
	b.pause(resting)
	processor, requests, begin := operator.processor(b.t), total(b.requests()), time.Now()
	b.pause(*idle)
	minutes := time.Since(begin).Minutes()
	return restCost{
		processor: time.Duration(float64(operator.processor(b.t)-processor) / minutes),
		requests:  (total(b.requests()) - requests) / minutes,
		resident:  operator.resident(b.t),
	}
}

// createClusters creates those from one number to another, as fast as the API server takes them.
func (b *bench) createClusters(from, to int, version string) {
	b.t.Helper()
	b.together(to-from, func(ctx context.Context, i int) error {
		_, err := b.n.EtcdClusters.EtcdV1beta2().EtcdClusters(b.n.Name).Create(ctx, &v1beta2.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", from+i)},
			Spec: v1beta2.ClusterSpec{
				Size: 1, Version: version,
				Pod: &v1beta2.PodPolicy{NodeSelector: map[string]string{simulatedLabel: b.n.Name}},
			},
		}, metav1.CreateOptions{})
		return err
	})
}

// waitReady waits until so many clusters are as specified, with this version.
func (b *bench) waitReady(count int, version string) {
	b.t.Helper()
	harness.Wait(b.t, fmt.Sprintf("%d clusters of %s", count, version), 20*time.Minute, func(ctx context.Context) error {
		return allReady(ctx, b.n, count, version)
	})
}

// allReady returns an error unless so many clusters are as specified, with this version.
func allReady(ctx context.Context, n *harness.Namespace, count int, version string) error {
	list, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	ready, example := 0, ""
	for _, c := range list.Items {
		st := &c.Status
		// The list may be older than an edit of the spec.
		if c.Spec.Version == version && st.ObservedGeneration == c.Generation && st.CurrentVersion == version &&
			st.Condition(v1beta2.ClusterConditionReady).Status == corev1.ConditionTrue {
			ready++
			continue
		}
		example = fmt.Sprintf("%s is %s with %s: %s", c.Name, st.Phase, st.CurrentVersion, st.Reason)
	}
	if ready < count {
		return fmt.Errorf("%d of %d are ready; %s", ready, count, example)
	}
	return nil
}

func total(requests map[string]float64) float64 {
	sum := 0.0
	for _, n := range requests {
		sum += n
	}
	return sum
}
