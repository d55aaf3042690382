// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster takes care of one EtcdCluster. A Cluster owns one goroutine
// that makes passes: it observes the cluster's pods, Services and members, plans
// the one next step from what it saw, without side effects, and applies it. A
// pass starts when the object, a pod or a Service changes; a timer is only the
// backstop. Which EtcdClusters there are is the business of package controller;
// what etcd can do is that of package etcd.
package cluster
