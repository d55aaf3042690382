// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup manages one EtcdBackup: a goroutine that makes its backups
// when they are due, reports them in its status, and deletes those that are
// no longer wanted. What decides is pure: schedule, plan, retention and the rules
// of the status. How a snapshot is taken and how a store is spoken to is not its
// business; see pkg/snapshot, pkg/location and pkg/store.
package backup
