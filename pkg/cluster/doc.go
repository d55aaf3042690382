// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster manages one EtcdCluster. A Cluster owns one goroutine that runs passes. A
// pass observes the cluster's pods, Services and members, plans the one next step without side
// effects, and applies it. A pass starts when the object, a pod or a Service changes, or at the
// latest after a period. Package controller knows which EtcdClusters there are. Package etcd
// knows what etcd can do.
package cluster
