// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// An interrupted `hack/kube up` ends what it has started. The others leave a Kubernetes as it is.
func TestOnlyUpSaysThatNothingIsLeftRunning(t *testing.T) {
	for _, c := range append(commands(), command{name: "image"}) {
		if said := interrupted(c.name); strings.Contains(said, "nothing") != (c.name == "up") {
			t.Errorf("an interrupted hack/kube %s says %q", c.name, said)
		}
	}
}
