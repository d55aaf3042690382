// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certcheck judges the certificates of an EtcdCluster: their dates, the names
// that they cover, and whether the parties that meet trust each other. It reads no
// Secrets.
package certcheck
