// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan decides the next step for an EtcdCluster. Plan is a pure function of an
// Observation, which holds everything that a step may depend on, including the time and new
// names. A linter keeps clients, clocks and random numbers out of this package.
package plan
