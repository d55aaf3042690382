// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package panics

import "testing"

func TestNotBegun(t *testing.T) { t.Parallel() }

func TestPanics(*testing.T) {
	var none map[string]int
	none["x"] = 1
}
