// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/etcd-operator/etcd-operator/pkg/controller/fleet/fleettest"
)

func TestTheGaugeOfTheSizeNeverDrifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, registry := newStage(t, false), prometheus.NewRegistry()
		opts := prometheus.GaugeOpts{Name: "clusters", Help: "How many there are."}
		var waits error
		ready := func() error { return waits }
		if err := s.fleet.RegisterSize(registry, opts, ready); err != nil {
			t.Fatal(err)
		}
		if err := s.fleet.RegisterSize(registry, opts, ready); err == nil {
			t.Error("registered twice")
		}
		expect := func(size int) {
			t.Helper()
			want := fmt.Sprintf("# HELP clusters How many there are.\n# TYPE clusters gauge\nclusters %d\n", size)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Error(err)
			}
		}
		a := fleettest.EtcdCluster("a", "1")
		expect(0)
		s.handler.OnAdd(a, false)
		s.handler.OnUpdate(a, a)
		expect(1)
		s.handler.OnDelete(a)
		s.handler.OnDelete(a)
		expect(0)
		waits = errors.New("another instance leads")
		if shown, err := testutil.GatherAndCount(registry); shown != 0 || err != nil {
			t.Errorf("not ready, it shows %d metrics, error %v", shown, err)
		}
	})
}
