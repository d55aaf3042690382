// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chaos writes to and reads from clusters while a seeded schedule of faults
// strikes them, on the local Kubernetes. In the end it checks that the history of all
// clients is linearizable, that watches have no gaps, that leases hold what they promise,
// and that every acknowledged write is there. hack/chaos runs it.
//
// The rules of the checks have no build tag, and unit tests. Each other file holds the
// faults of one kind.
package chaos
