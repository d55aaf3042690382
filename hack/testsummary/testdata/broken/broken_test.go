// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package broken

import "testing"

func TestIt(*testing.T) {
	missing()
	gone()
}
