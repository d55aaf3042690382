// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload writes to an etcd cluster while something happens to it,
// and judges afterwards whether the cluster kept its promises: that no
// acknowledged write is lost, and that revisions only grow.
//
// It knows etcd and nothing of Kubernetes, so that its judgement can be tested
// without a cluster.
package workload
