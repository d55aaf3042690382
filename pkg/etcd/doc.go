// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd holds everything that the operator knows about etcd itself: versions and the
// upgrade paths between them, members and their URLs, and a client for the members of one
// cluster. It knows nothing of Kubernetes.
package etcd
