// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reads all that is known of an EtcdCluster into one value: from the
// API server, and from the members themselves. It judges nothing.
package observe

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// Cluster is an EtcdCluster at one time.
type Cluster struct {
	Time   time.Time
	Object *api.EtcdCluster
	// Chosen are the flags with which the user has chosen the Kubernetes cluster.
	Chosen []string
	// Pods are those of the members, by name.
	Pods []corev1.Pod
	// Zones are those of the nodes, by node. A user without rights on nodes sees none.
	Zones map[string]string
	// Answers are what the members that run say, in the order of Pods.
	Answers []Answer
	// Members is the membership. Agreed is whether a quorum confirmed it.
	Members []etcd.Member
	Agreed  bool
	// NotAsked is why no member was asked; nil where they were.
	NotAsked     error
	Certificates []Certificate
	// Backups are the EtcdBackups of the cluster, and NoBackups why they can't be read.
	Backups   []api.EtcdBackup
	NoBackups error
	// Restore is the EtcdRestore of the cluster's name; nil where there is none.
	Restore *api.EtcdRestore
}

// Answer is what one member says.
type Answer struct {
	Pod string
	// Status is that of the member, if Err is nil.
	Status etcd.Status
	Err    error
	// Commits is nil where a quorum confirmed a read through the member.
	Commits error
	// Metrics is nil where they could not be read.
	Metrics *Metrics
}

// Place is where recommended commands work.
func (c *Cluster) Place() hint.Place {
	return hint.Place{Namespace: c.Object.Namespace, Chosen: c.Chosen}
}

// Answer returns the answer of the member with an ID.
func (c *Cluster) Answer(id uint64) *Answer {
	for i := range c.Answers {
		if a := &c.Answers[i]; a.Err == nil && a.Status.MemberID == id {
			return a
		}
	}
	return nil
}

// Quorum reports whether a quorum has confirmed anything through any member.
func (c *Cluster) Quorum() bool {
	return c.Agreed || slices.ContainsFunc(c.Answers, func(a Answer) bool { return a.Commits == nil })
}

// Pod returns the pod of a name.
func (c *Cluster) Pod(name string) *corev1.Pod {
	for i := range c.Pods {
		if c.Pods[i].Name == name {
			return &c.Pods[i]
		}
	}
	return nil
}

// Condition returns a condition of the EtcdCluster; nil where it has none.
func (c *Cluster) Condition(kind api.ClusterConditionType) *api.ClusterCondition {
	for i := range c.Object.Status.Conditions {
		if c.Object.Status.Conditions[i].Type == kind {
			return &c.Object.Status.Conditions[i]
		}
	}
	return nil
}
