// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"math"
	"runtime/debug"
)

// leaveMemory leaves a tenth of the memory limit to what Go does not count, and the kernel does:
// above all the buffers of sockets. The manifests state the container's limit in GOMEMLIMIT.
func leaveMemory() {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * 9)
	}
}
