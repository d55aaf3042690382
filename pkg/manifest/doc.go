// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest builds the Kubernetes objects of an EtcdCluster, and reads their state back.
// The objects are pods, volumes, Services and the PodDisruptionBudget, with their names, labels
// and annotations. The package sends no requests and makes no decisions.
package manifest
