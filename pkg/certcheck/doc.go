// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certcheck checks the certificates of an EtcdCluster: their dates, the names that
// they cover, and whether the parties accept each other's. It reads no Secrets.
package certcheck
