// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// An edit of spec.repository alone is rolled out, and the status says how far.
func TestStatusTellsOfAnotherRepository(t *testing.T) {
	st := statusIn(t, `
cluster version=3.6.16
member a leader otherrepo
member b
member c otherrepo`)
	if got, want := conditionOf(st, api.ClusterConditionUpdating), "True / Cluster updating / 1 of 3 members follow the spec"; !strings.HasPrefix(got, want) {
		t.Errorf("Updating is %q, want %q", got, want)
	}
	if st.TargetVersion != "" {
		t.Errorf("it upgrades to %s", st.TargetVersion)
	}
	st = statusIn(t, `
cluster version=3.6.16
member a leader
member b
member c`)
	if got := conditionOf(st, api.ClusterConditionUpdating); got != "" {
		t.Errorf("Updating is %q in the end", got)
	}
}
