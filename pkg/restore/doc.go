// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore manages one EtcdRestore: a goroutine that looks at what there
// is, decides on one step, puts on record what it is about to do, and does it, until
// the cluster is back. What decides is pure: plan and the rules that it is made of,
// which are in the order of the steps. All that it knows is in the EtcdRestore's
// status and in what exists; so each step can be repeated after a crash.
//
// Which backup it is, and whether it is whole, pkg/selection shows; who serves it is
// pkg/backupserver; how the first member starts on it is the business of pkg/cluster.
package restore
