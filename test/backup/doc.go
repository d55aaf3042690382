// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup makes backups of real members of etcd in real stores, with
// everything of the backup operator but an API server, and restores them.
package backup
