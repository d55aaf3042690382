// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package race

// Enabled reports whether the race detector watches this program.
const Enabled = true
