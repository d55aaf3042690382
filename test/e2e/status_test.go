//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
	"github.com/etcd-operator/etcd-operator/test/monitoring"
)

// noticed is within what a lost quorum must be told: a period of eight seconds,
// five for members that don't answer, and as much for a loaded machine.
const noticed = 25 * time.Second

// A member that stops, and then a second, without Kubernetes seeing anything of
// it: only their silence tells.
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
	harness.Wait(t, "status that tells which member is silent", noticed, func(context.Context) error {
		for _, m := range cluster.Status().MemberStatuses {
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
	t.Logf("the lost quorum was told %v after it was lost", time.Since(lost).Round(100*time.Millisecond))
	for _, m := range cluster.Status().MemberStatuses {
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
	// Not at the first try: members that come back may vote once more.
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

// Nothing happens, so nothing is written.
func TestStatusOfAnIdleClusterIsNotWritten(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	var version string
	harness.Wait(t, "a status that rests", time.Minute, func(context.Context) error {
		before := version
		if version = cluster.Object().ResourceVersion; before != version {
			return errors.New("it has changed")
		}
		return nil
	})
	harness.Holds(t, "the object is not written", time.Minute, func(context.Context) error {
		if now := cluster.Object(); now.ResourceVersion != version {
			return fmt.Errorf("status %+v", now.Status)
		}
		return nil
	})
}

// A database that is full makes etcd refuse writes. The operator says so, names the
// member, and says when it is over.
func TestStatusTellsAlarms(t *testing.T) {
	for _, version := range []string{etcd35, etcd36, etcd37} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := harness.New(t)
			cluster := n.CreateObject(&v1beta2.EtcdCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
				Spec: v1beta2.ClusterSpec{Size: 1, Version: version, Pod: &v1beta2.PodPolicy{
					EtcdEnv: []corev1.EnvVar{{Name: "ETCD_QUOTA_BACKEND_BYTES", Value: "2097152"}},
				}},
			})
			cluster.WaitSettled()
			checkMetrics(t, cluster, []string{"etcd_network_peer_round_trip_time_seconds_bucket"}) // it has no peers
			client, err := cluster.Client()
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			revision := fill(t, client)

			member := cluster.Pods()[0].Name
			cluster.WaitCondition(noticed, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "Out of space", member, "etcdctl alarm disarm")
			if m := cluster.Status().MemberStatuses[0]; !slices.Equal(m.Alarms, []string{"NOSPACE"}) || !m.Healthy {
				t.Errorf("member %+v", m)
			}
			cluster.WaitWarning(10*time.Second, "Alarm Raised", member)
			if got := cluster.EventMessages("Quorum Lost"); len(got) > 0 {
				t.Errorf("the quorum was not lost: %q", got)
			}

			if _, err := client.Compact(t.Context(), revision); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Defragment(t.Context(), client.Endpoints()[0]); err != nil {
				t.Fatal(err)
			}
			if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{Alarm: etcdserverpb.AlarmType_NONE}); err != nil {
				t.Fatal(err)
			}
			cluster.WaitCondition(noticed, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
			cluster.WaitEvents(1, "Alarm Cleared")
		})
	}
}

// fill writes until the database is full, and returns the last revision.
func fill(t *testing.T, client *clientv3.Client) (revision int64) {
	t.Helper()
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		put, err := client.Put(ctx, "filling", strings.Repeat("x", 100_000))
		cancel()
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return revision
		case err != nil:
			t.Fatal(err)
		}
		revision = put.Header.Revision
	}
	t.Fatal("the database takes ten megabytes, and its quota is two")
	return 0
}

func hasMetric(text, name string) bool {
	return regexp.MustCompile(`(?m)^` + name + `[{ ]`).MatchString(text)
}

// operators have metrics of their own.
var operators = regexp.MustCompile(`^etcd_(backup_|restore_)?operator_`)

// checkMetrics asks each member for what the alerts and the dashboard need of it.
func checkMetrics(t *testing.T, cluster *harness.Cluster, but []string) {
	t.Helper()
	queries, err := monitoring.Queries("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range cluster.Pods() {
		text := metricsOf(t, pod)
		for _, q := range queries {
			for _, name := range q.Metrics() {
				// Those of the operators are not the members'.
				if operators.MatchString(name) || slices.Contains(but, name) {
					continue
				}
				if !hasMetric(text, name) {
					t.Errorf("%s: %s has no metric %s", q.Name, pod.Name, name)
				}
			}
		}
	}
}

func metricsOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "2381")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
