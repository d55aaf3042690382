// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller decides which EtcdClusters this operator manages, and
// runs one cluster.Cluster for each of them. It registers the
// CustomResourceDefinition, watches EtcdClusters and what belongs to them, and
// hands what it sees to the Cluster concerned. What has to be done for a cluster
// is none of its business: that is package cluster's.
//
// There is no work queue. A handler of an informer passes the object on to a
// goroutine that owns the cluster and returns; it never waits. So a cluster that
// is slow or stuck delays neither another one nor the informer, and of many edits
// the last one counts.
package controller
