// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos reads from and writes to clusters on the local Kubernetes while a seeded
// schedule injects faults. In the end it checks that the history of all clients is
// linearizable, that watches have no gaps, that leases keep their promises, and that every
// acknowledged write exists. hack/chaos runs it.
//
// The checks have unit tests and no build tag. Each other file holds the faults of one kind.
package chaos
