//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/monitoring"
)

// noticed bounds the time until the operator reports a lost quorum: a period of eight seconds,
// five for silent members, and as much for a loaded machine.
const noticed = 25 * time.Second

// A member stops, and then a second, without a sign in Kubernetes: only their silence shows
// it.
func TestStatusTellsWhatClientsSee(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	pods := cluster.Pods()
	available := func() corev1.ConditionStatus {
		return cluster.Condition(v1beta2.ClusterConditionAvailable).Status
	}

	cluster.StopMember(pods[0])
	harness.Wait(t, "status that names the silent member", noticed, func(context.Context) error {
		members := cluster.Status().MemberStatuses
		if len(members) != 3 {
			return fmt.Errorf("it names %d members", len(members))
		}
		for _, m := range members {
			if wrong := m.Name == pods[0].Name; m.Healthy == wrong || (m.Problem != "") != wrong {
				return fmt.Errorf("%+v", m)
			}
		}
		return nil
	})
	if got := available(); got != corev1.ConditionTrue {
		t.Errorf("one of three members is silent and Available is %s", got)
	}
	cluster.Put("while", "two serve")

	cluster.StopMember(pods[1])
	lost := time.Now()
	if err := tryPut(t, cluster); err == nil {
		t.Error("a write went through with one of three members")
	}
	cluster.WaitCondition(noticed, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "Quorum lost", "1 of 3", "2 are needed", pods[0].Name, pods[1].Name)
	t.Logf("the lost quorum was reported %v after the loss", time.Since(lost).Round(100*time.Millisecond))
	silent := cluster.Status().MemberStatuses
	if len(silent) != 3 {
		t.Errorf("without a quorum the status names %d members", len(silent))
	}
	for _, m := range silent {
		if m.Healthy || m.Leader || m.Problem == "" {
			t.Errorf("without a quorum: %+v", m)
		}
	}
	cluster.WaitEvents(1, "Quorum Lost")
	harness.Holds(t, "Available stays False", 5*time.Second, func(context.Context) error {
		if got := available(); got != corev1.ConditionFalse {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})

	cluster.ContinueMember(pods[0])
	cluster.ContinueMember(pods[1])
	cluster.WaitCondition(time.Minute, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	// A single check is not enough: returning members may vote again.
	cluster.Put("after", "the quorum is back")
	cluster.WaitSettled()
	cluster.WaitEvents(1, "Quorum Restored")
	checkMetrics(t, cluster, nil)
}

// tryPut writes once.
func tryPut(t *testing.T, cluster *harness.Cluster) error {
	t.Helper()
	client, err := cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = client.Put(ctx, "tried", "yes")
	return err
}

func hasMetric(text, name string) bool {
	return regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(text)
}

// Metrics of the operators.
var operators = regexp.MustCompile(`^etcd_(backup_|restore_)?operator_`)

// checkMetrics checks that each member has the metrics of the alerts and the dashboard.
func checkMetrics(t *testing.T, cluster *harness.Cluster, but []string) {
	t.Helper()
	queries, err := monitoring.Queries("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range cluster.Pods() {
		// Some metrics appear with their first event.
		harness.Wait(t, "metrics of "+pod.Name, harness.Settle, func(ctx context.Context) error {
			text, err := metricsOf(ctx, pod)
			if err != nil {
				return err
			}
			for _, q := range queries {
				for _, name := range q.Metrics() {
					// The operators' own metrics are not the members'.
					if operators.MatchString(name) || slices.Contains(but, name) {
						continue
					}
					if !hasMetric(text, name) {
						return fmt.Errorf("%s: no metric %s", q.Name, name)
					}
				}
			}
			return nil
		})
	}
}

func metricsOf(ctx context.Context, pod *corev1.Pod) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "2381")+"/metrics", nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
