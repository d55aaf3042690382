// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd holds everything that the operator knows of etcd itself:
// versions and the paths between them, members and their URLs, and a client
// that asks and changes the members of one cluster. Nothing here knows of
// Kubernetes.
package etcd
