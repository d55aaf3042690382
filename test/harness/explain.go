// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Limits of each printed part.
const (
	timelineLines    = 300
	operatorLogLines = 200
	etcdLogLines     = 60
	initLogLines     = 20
)

// explain prints what explains a failure.
func (n *Namespace) explain() {
	ctx, cancel := later(n.t.Context(), 30*time.Second)
	defer cancel()
	var b strings.Builder
	section := func(format string, args ...any) { fmt.Fprintf(&b, "\n--- "+format+"\n", args...) }

	section("what happened in namespace %s", n.Name)
	n.record.mu.Lock()
	timeline := n.record.timeline
	n.record.mu.Unlock()
	if dropped := len(timeline) - timelineLines; dropped > 0 {
		fmt.Fprintf(&b, "(%d lines before)\n", dropped)
		timeline = timeline[dropped:]
	}
	b.WriteString(strings.Join(timeline, "\n") + "\n")

	clusters, err := n.EtcdClusters.EtcdV1beta2().EtcdClusters(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		section("EtcdClusters: %v", err)
		clusters = &v1beta2.EtcdClusterList{}
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		section("EtcdCluster %s", cluster.Name)
		cluster.ManagedFields = nil
		text, err := yaml.Marshal(cluster)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		b.Write(text)
		n.explainMembers(ctx, &b, cluster.Name)
	}

	restores, err := n.EtcdClusters.EtcdV1beta2().EtcdRestores(n.Name).List(ctx, metav1.ListOptions{})
	if err != nil { // there is no CRD yet
		restores = &v1beta2.EtcdRestoreList{}
	}
	for i := range restores.Items {
		section("EtcdRestore %s", restores.Items[i].Name)
		restores.Items[i].ManagedFields = nil
		text, err := yaml.Marshal(&restores.Items[i])
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		b.Write(text)
	}

	section("pods")
	for _, pod := range n.Pods() {
		fmt.Fprintf(&b, "%s: %s\n", pod.Name, podLine(pod, false))
		for _, c := range pod.Status.Conditions {
			fmt.Fprintf(&b, "    %s=%s since %s %s %s\n", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.TimeOnly), c.Reason, c.Message)
		}
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if w := status.State.Waiting; w != nil && w.Message != "" {
				fmt.Fprintf(&b, "    %s waits: %s: %s\n", status.Name, w.Reason, w.Message)
			}
		}
	}

	n.record.mu.Lock()
	logs := make([]*tail, len(n.record.order))
	for i, id := range n.record.order {
		logs[i] = n.record.logs[id]
	}
	n.record.mu.Unlock()
	for _, log := range logs {
		lines := initLogLines
		switch {
		case strings.HasPrefix(log.name, operatorApp+"-"), strings.HasPrefix(log.name, restoreApp+"-"):
			lines = operatorLogLines
		case strings.Contains(log.name, "/etcd "):
			lines = etcdLogLines
		}
		section("log of %s", log.name)
		b.WriteString(strings.Join(log.last(lines), "\n") + "\n")
	}
	n.t.Log(b.String())
}

// Timeline returns what happened in the namespace since a time, a line each.
func (n *Namespace) Timeline(since time.Time) []string {
	n.record.mu.Lock()
	defer n.record.mu.Unlock()
	i, _ := slices.BinarySearchFunc(n.record.told, since, time.Time.Compare)
	return slices.Clone(n.record.timeline[i:])
}

// explainMembers prints each member's own status and membership. Only serializable reads work
// without a quorum.
func (n *Namespace) explainMembers(ctx context.Context, b *strings.Builder, cluster string) {
	connections := newConnections(func(pod *corev1.Pod) *tls.Config {
		if c := n.handles[cluster]; c != nil {
			return c.security(c.host(pod))
		}
		return nil
	}, func() (etcd.Credentials, error) {
		if c := n.handles[cluster]; c != nil {
			return c.user()
		}
		return etcd.Credentials{}, nil
	})
	defer connections.close()
	for _, pod := range n.Pods() {
		if pod.Labels["etcd_cluster"] != cluster {
			continue
		}
		fmt.Fprintf(b, "\n--- member list and status of %s\n", pod.Name)
		if err := explainMember(ctx, b, connections, pod); err != nil {
			fmt.Fprintln(b, err)
		}
	}
}

func explainMember(ctx context.Context, b *strings.Builder, connections *connections, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client, err := connections.to(pod)
	if err != nil {
		return err
	}
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "id %x, cluster %x, leader %x, version %s, learner %t, revision %d, raft index %d, term %d, errors %v\n", status.Header.MemberId,
		status.Header.ClusterId, status.Leader, status.Version, status.IsLearner, status.Header.Revision, status.RaftIndex, status.RaftTerm, status.Errors)
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		fmt.Fprintf(b, "    %x %q learner=%t %v\n", m.ID, m.Name, m.IsLearner, m.PeerURLs)
	}
	return nil
}
