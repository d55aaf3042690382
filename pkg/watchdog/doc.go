// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watchdog limits work that makes no progress, that no context ends, or that panics.
package watchdog
