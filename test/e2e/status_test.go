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
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// Nothing happens, so the operator writes nothing, except for what members and pods do by
// themselves on a loaded machine.
func TestStatusOfAnIdleClusterIsNotWritten(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.Create(3, "")
	cluster.WaitSettled()
	waitBudget(t, n, cluster, 2)
	written := cluster.Statuses()
	var before *v1beta2.ClusterStatus
	harness.Holds(t, "the object is not written", time.Minute, func(context.Context) error {
		for _, now := range written() {
			if before != nil && !equality.Semantic.DeepEqual(now, *before) && whatHappened(now) == whatHappened(*before) {
				return fmt.Errorf("status %+v became %+v", *before, now)
			}
			before = &now
		}
		return nil
	})
}

// whatHappened returns a status's facts about members and pods: the leader, and the ready
// members.
func whatHappened(s v1beta2.ClusterStatus) string {
	told := fmt.Sprintf("ready %v, unready %v", s.Members.Ready, s.Members.Unready)
	for _, c := range s.Conditions {
		told += fmt.Sprintf("; %s is %s", c.Type, c.Status)
	}
	for _, m := range s.MemberStatuses {
		told += fmt.Sprintf("; %s leads %t, healthy %t, %s", m.Name, m.Leader, m.Healthy, m.Problem)
	}
	return told
}

// A full database makes etcd refuse writes. The operator reports it, names the member, and
// reports the end.
func TestStatusTellsAlarms(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	cluster := n.CreateObject(&v1beta2.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "etcd"},
		Spec: v1beta2.ClusterSpec{Size: 1, Version: etcd37, Pod: &v1beta2.PodPolicy{
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
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionFalse, "Out of space", member, "etcdctl alarm disarm")
	harness.Wait(t, "a member that is healthy and has an alarm", harness.Settle, func(context.Context) error {
		if m := cluster.Status().MemberStatuses[0]; !slices.Equal(m.Alarms, []string{"NOSPACE"}) || !m.Healthy {
			return fmt.Errorf("member %+v", m)
		}
		return nil
	})
	cluster.WaitWarning(harness.Settle, "Alarm Raised", member)
	for _, message := range cluster.EventMessages("Quorum Lost") {
		if strings.Contains(message, "Out of space") {
			t.Errorf("the quorum was not lost: %q", message)
		}
	}

	heal := func(what string, do func(context.Context) error) {
		t.Helper()
		harness.Wait(t, what, harness.Settle, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return do(ctx)
		})
	}
	heal("compact", func(ctx context.Context) error {
		_, err := client.Compact(ctx, revision)
		if errors.Is(err, rpctypes.ErrCompacted) {
			return nil // the previous answer was lost
		}
		return err
	})
	heal("defragment", func(ctx context.Context) error {
		_, err := client.Defragment(ctx, client.Endpoints()[0])
		return err
	})
	heal("disarm", func(ctx context.Context) error {
		_, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{Alarm: etcdserverpb.AlarmType_NONE})
		return err
	})
	cluster.WaitCondition(harness.Settle, v1beta2.ClusterConditionAvailable, corev1.ConditionTrue)
	cluster.WaitEvents(1, "Alarm Cleared")
}

// fill writes until the database is full, and returns the last revision.
func fill(t *testing.T, client *clientv3.Client) (revision int64) {
	t.Helper()
	taken := 0
	harness.Wait(t, "a full database", harness.Settle, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		put, err := client.Put(ctx, "filling", strings.Repeat("x", 100_000))
		switch {
		case errors.Is(err, rpctypes.ErrNoSpace):
			return nil
		case err != nil:
			return err
		}
		if taken++; taken > 100 {
			t.Fatal("the database takes ten megabytes, and its quota is two")
		}
		revision = put.Header.Revision
		return errors.New("it takes more")
	})
	return revision
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
