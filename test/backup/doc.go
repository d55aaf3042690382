// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup backs up real members of etcd to real stores, and restores them, with all
// parts of the backup operator except an API server.
package backup
