// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

// Package race lets tests do less while the race detector watches: it makes them about seven
// times slower.
package race

// Enabled reports whether the race detector watches this program.
const Enabled = false
