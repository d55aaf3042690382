// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"io"
	"math"
	"runtime/debug"
	"testing"

	"github.com/sirupsen/logrus"
)

func TestAnOperatorLeavesMemoryToTheKernel(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for stated, want := range map[int64]int64{512 << 20: 483183819, math.MaxInt64: math.MaxInt64} {
		debug.SetMemoryLimit(stated) // as GOMEMLIMIT does
		var got int64
		Operate("etcd-operator", Flags{}, nil, io.Discard, io.Discard, func(*logrus.Entry) error {
			got = debug.SetMemoryLimit(-1)
			return nil
		})
		if got != want {
			t.Errorf("with GOMEMLIMIT=%d, the operator has the limit %d, want %d", stated, got, want)
		}
	}
}
