// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeplan

import (
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
)

func TestSteps(t *testing.T) {
	for _, test := range []struct{ from, first, to, want string }{
		{"3.7.3", "3.7.3", "3.7.3", ""},
		{"3.6.16", "3.6.16", "3.7.3", "3.7.3"},
		{"3.6.16", "", "v3.7.3", "3.7.3"},
		{"3.7.1", "3.7.1", "3.7.3", "3.7.3"},
		{"3.5.35", "3.5.35", "3.7.3", "3.6.16 3.7.3"},
		{"3.5.9", "3.5.9", "3.7.3", "3.5.35 3.6.16 3.7.3"},
		{"3.6.4", "3.6.4", "3.7.3", "3.6.16 3.7.3"},
		{"3.5.9", "3.5.9", "3.6.2", "3.5.35 3.6.2"},
	} {
		steps, err := Steps(test.from, test.first, test.to)
		if got := strings.Join(steps, " "); err != nil || got != test.want {
			t.Errorf("%s to %s: %q, %v; want %q", test.from, test.to, got, err, test.want)
		}
	}
}

func TestWaysThatEtcdDoesNotSupport(t *testing.T) {
	for _, test := range []struct{ from, first, to, want string }{
		{"3.7.3", "3.7.3", "3.6.16", "can't be downgraded"},
		{"3.5.35", "3.4.23", "3.6.16", "began with etcd 3.4.23"},
		{"", "", "3.6.16", "version is not known"},
		{"3.6.16", "", "3.7", "not of the form"},
	} {
		if steps, err := Steps(test.from, test.first, test.to); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s to %s: %v, %v; want %q", test.from, test.to, steps, err, test.want)
		}
	}
}

func TestAgainst(t *testing.T) {
	well := summary.Summary{Name: "orders", State: summary.Serving, Version: "3.6.16", Members: []summary.Member{{Name: "a", Version: "3.6.16"}}}
	if got := Against(&well, "3.7.3"); len(got) > 0 {
		t.Errorf("against a cluster that is well: %q", got)
	}
	ill := well
	ill.State, ill.Reasons, ill.Paused, ill.Target = summary.Degraded, []string{"a: it has no pod"}, true, "3.6.17"
	got := strings.Join(Against(&ill, "3.7.3"), "\n")
	for _, want := range []string{"DEGRADED: a: it has no pod", "paused", "another upgrade is under way, to 3.6.17"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}
