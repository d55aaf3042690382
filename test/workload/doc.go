// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload writes to an etcd cluster during a test, and checks afterwards that the
// cluster kept its promises: no acknowledged write is lost, and revisions only grow.
//
// It knows etcd and nothing of Kubernetes, so that its checks are testable without a cluster.
package workload
