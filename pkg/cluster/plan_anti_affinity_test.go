// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

func TestNodesWithAnotherPodInTheWay(t *testing.T) {
	for message, want := range map[string]int{
		"0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.": 3,
		"0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 3 node(s) didn't match pod anti-affinity rules.":                                 3,
		"0/3 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't satisfy existing pods anti-affinity rules.":                          3,
		"0/3 nodes are available: 3 Insufficient cpu.": 0,
		"": 0,
	} {
		pod := memberPod(t, testCluster(), "a")
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: message}}
		if got := manifest.PodStateOf(pod).Crowded; got != want {
			t.Errorf("%q: %d nodes, want %d", message, got, want)
		}
		pod.Spec.NodeName = "n1"
		if got := manifest.PodStateOf(pod).Crowded; got != 0 {
			t.Errorf("%q: %d nodes, and the pod has one", message, got)
		}
	}
}

func TestStatusSaysWhatGivesANewMemberRoom(t *testing.T) {
	for nodes, want := range map[string]string{"crowded=3": "makes room", "crowded=1": "add a node"} {
		for _, added := range []string{
			"pod n pending " + nodes + " ic=a,b,c,n",
			"member n learner unstarted template=new node= " + nodes + " ic=a,b,c,n",
		} {
			st := statusIn(t, `
cluster template=new
member a leader template=old node=n1
member b template=old node=n2
member c template=old node=n3
`+added)
			if got := conditionOf(st, api.ClusterConditionUpdating); !strings.Contains(got, want) {
				t.Errorf("%s: Updating is %q, and does not say %q", added, got, want)
			}
		}
	}
}
