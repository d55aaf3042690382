// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// ExpectGauge fails the test if a registry does not have a metric that it should have, or has
// one that it should not. The registry is as a controller was given it.
func ExpectGauge(t *testing.T, registry prometheus.Registerer, name string, want bool) {
	t.Helper()
	found, err := testutil.GatherAndCount(registry.(prometheus.Gatherer), name)
	if err != nil || found != 0 != want {
		t.Errorf("the metric %s is there %d times, want it: %t, error %v", name, found, want, err)
	}
}
