// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness derives the conditions Ready, Reconciling and Stalled of all kinds
// from the rest of their status, in the sense of kstatus (sigs.k8s.io/cli-utils). Its
// functions are pure: they read no clock and make no requests.
package readiness
