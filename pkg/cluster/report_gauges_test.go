// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// gaugesIn are the values of the gauges of cluster c in namespace ns, without
// what their names have in common.
func gaugesIn(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if maps.Equal(labels, map[string]string{"namespace": "ns", "cluster": "c"}) {
				values[strings.TrimPrefix(f.GetName(), "etcd_operator_cluster_")] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}

func TestGaugesTellHowAClusterIs(t *testing.T) {
	for name, c := range map[string]struct {
		world  string
		change func(*plan.Observation)
		want   map[string]float64
	}{
		"healthy": {"cluster size=3\nmember a leader\nmember b\nmember c learner applied=4990", func(o *plan.Observation) {
			o.Members[1].Status.DBSize = 4096
			o.Members[1].Status.RaftIndex = 5003
		}, map[string]float64{
			"available": 1, "availability_unknown": 0, "data_missing": 0, "bootstrapped": 1, "size": 3, "members": 3, "voters": 2, "healthy_members": 3, "alarms": 0,
			"db_size_bytes": 4096, "raft_index_lag": 13, "paused": 0, "refused": 0, "upgrading": 0, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
		"without a quorum, and paused": {"cluster size=5 paused no-quorum\nmember a\nmember b down\nmember c down", nil, map[string]float64{
			"available": 0, "availability_unknown": 0, "data_missing": 0, "bootstrapped": 1, "size": 5, "members": 3, "voters": 3, "healthy_members": 0, "alarms": 0,
			"db_size_bytes": 0, "raft_index_lag": 0, "paused": 1, "refused": 0, "upgrading": 0, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
		"out of the operator's sight, with a quorum of ready pods": {"cluster size=3\nmember a leader\nmember b\nmember c", func(o *plan.Observation) {
			o.Quorum, o.Blind, o.Members, o.Status.Size = false, "x509: certificate signed by unknown authority", nil, 3
		}, map[string]float64{
			"available": 0, "availability_unknown": 1, "data_missing": 0, "bootstrapped": 1, "size": 3, "members": 3, "voters": 0, "healthy_members": 0, "alarms": 0,
			"db_size_bytes": 0, "raft_index_lag": 0, "paused": 0, "refused": 0, "upgrading": 0, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
		"with an alarm, and an upgrade": {"cluster size=1 version=3.7.3\nmember a leader", func(o *plan.Observation) {
			o.Members[0].Status.Alarms = []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}
		}, map[string]float64{
			"available": 0, "availability_unknown": 0, "data_missing": 0, "bootstrapped": 1, "size": 1, "members": 1, "voters": 1, "healthy_members": 1, "alarms": 1,
			"db_size_bytes": 0, "raft_index_lag": 0, "paused": 0, "refused": 0, "upgrading": 1, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
		"with a version that is refused": {"cluster size=1 version=3.7.3 running=3.5.35\nmember a leader", nil, map[string]float64{
			"available": 1, "availability_unknown": 0, "data_missing": 0, "bootstrapped": 1, "size": 1, "members": 1, "voters": 1, "healthy_members": 1, "alarms": 0,
			"db_size_bytes": 0, "raft_index_lag": 0, "paused": 0, "refused": 1, "upgrading": 0, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
		"with a part of the spec that is refused": {"cluster size=1 tolerated=x\nmember a leader", nil, map[string]float64{
			"available": 1, "availability_unknown": 0, "data_missing": 0, "bootstrapped": 1, "size": 1, "members": 1, "voters": 1, "healthy_members": 1, "alarms": 0,
			"db_size_bytes": 0, "raft_index_lag": 0, "paused": 0, "refused": 1, "upgrading": 0, "recovering": 0, "recovery_needs_person": 0, "import_needs_person": 0,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			m, err := NewMetrics(registry)
			if err != nil {
				t.Fatal(err)
			}
			o := look(t, c.world)
			if c.change != nil {
				c.change(o)
			}
			st := statusAfter(o, plan.Plan(o), 1)
			m.state.saw(testCluster(), o, &st)
			if got := gaugesIn(t, registry); !maps.Equal(got, c.want) {
				t.Errorf("gauges %v, want %v", got, c.want)
			}
		})
	}
}

func TestGaugesTellWhoRecoversACluster(t *testing.T) {
	waiting := &api.AutomaticRecovery{Phase: api.AutomaticWaiting}
	choice := func(phase api.RecoveryPhase) *api.RecoveryChoice { return &api.RecoveryChoice{Phase: phase} }
	for name, c := range map[string]struct {
		recovery            *api.RecoveryStatus
		recovering, persons float64
	}{
		"there is a quorum":               {nil, 0, 0},
		"nobody has chosen":               {&api.RecoveryStatus{}, 0, 1},
		"the operator waits":              {&api.RecoveryStatus{Automatic: waiting}, 0, 0},
		"the operator does not act":       {&api.RecoveryStatus{Automatic: &api.AutomaticRecovery{Phase: api.AutomaticBlocked}}, 0, 1},
		"the choice is refused":           {&api.RecoveryStatus{Choice: choice(api.RecoveryRefused)}, 0, 1},
		"the choice has failed":           {&api.RecoveryStatus{Automatic: waiting, Choice: choice(api.RecoveryFailed)}, 0, 1},
		"the data of a survivor is saved": {&api.RecoveryStatus{Automatic: waiting, Choice: choice(api.RecoveryBackingUp)}, 1, 0},
		"the cluster is restored":         {&api.RecoveryStatus{Choice: choice(api.RecoveryRestoring)}, 1, 0},
	} {
		registry := prometheus.NewRegistry()
		m, err := NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		o := look(t, "cluster size=3 no-quorum\nmember a\nmember b down\nmember c down")
		st := statusAfter(o, plan.Plan(o), 1)
		st.Recovery = c.recovery
		m.state.saw(testCluster(), o, &st)
		if got := gaugesIn(t, registry); got["recovering"] != c.recovering || got["recovery_needs_person"] != c.persons {
			t.Errorf("%s: recovering is %v, recovery_needs_person %v", name, got["recovering"], got["recovery_needs_person"])
		}
	}
}

// An import may wait for days, with the members of both sides, or without a member.
func TestGaugesTellWhenAnImportNeedsAPerson(t *testing.T) {
	const (
		former = "\nmember old-0 former leader\nmember old-1 former\nmember old-2 former\nmember a\nmember b\n"
		copies = "cluster phase=Creating no-quorum import=copies:copy:held:open"
	)
	for name, c := range map[string]struct {
		world string
		want  map[string]float64
	}{
		"members join":                {"cluster import=begun:held" + former + "member c learner applied=4000", map[string]float64{"import_needs_person": 0, "bootstrapped": 1, "voters": 5}},
		"they have joined":            {"cluster import=begun:held" + former + "member c learner proven", map[string]float64{"import_needs_person": 1, "bootstrapped": 1, "voters": 5}},
		"the former members leave":    {"cluster import=begun:committed:held" + former + "member c", map[string]float64{"import_needs_person": 0, "bootstrapped": 1, "voters": 6}},
		"a copy is prepared":          {copies, map[string]float64{"import_needs_person": 1, "bootstrapped": 0, "voters": 0}},
		"a copy has obstacles":        {"cluster phase=Creating import=new:copy:checked", map[string]float64{"import_needs_person": 0, "bootstrapped": 0, "voters": 0}},
		"the etcd holds its own data": {"cluster size=1\nmember a leader", map[string]float64{"import_needs_person": 0, "bootstrapped": 1, "voters": 1}},
	} {
		registry := prometheus.NewRegistry()
		m, err := NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		o := look(t, c.world)
		st := statusAfter(o, plan.Plan(o), 1)
		m.state.saw(testCluster(), o, &st)
		got := gaugesIn(t, registry)
		for gauge, want := range c.want {
			if got[gauge] != want {
				t.Errorf("%s: %s is %v, want %v, with the import %+v", name, gauge, got[gauge], want, st.Import)
			}
		}
	}
}

func TestGaugesGoWithTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, pausedCluster())
		registry := prometheus.NewRegistry()
		var err error
		if w.cfg.Metrics, err = NewMetrics(registry); err != nil {
			t.Fatal(err)
		}
		c := w.cluster(pausedCluster())
		stop := run(t, c)
		got := gaugesIn(t, registry)
		if got["paused"] != 1 || got["last_pass_timestamp_seconds"] != float64(time.Now().Unix()) || got["failed_passes"] != 0 {
			t.Errorf("gauges %v", got)
		}
		stop()
		if got := gaugesIn(t, registry); len(got) > 0 {
			t.Errorf("nobody manages the cluster, and its gauges stay at %v", got)
		}
	})
}

func TestFailedPassesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		registry := prometheus.NewRegistry()
		var err error
		if w.cfg.Metrics, err = NewMetrics(registry); err != nil {
			t.Fatal(err)
		}
		up := w.refuseStatus()
		c := w.cluster(testCluster())
		defer run(t, c)()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := gaugesIn(t, registry)["failed_passes"]; got != 3 {
			t.Errorf("%v passes have failed", got)
		}
		up()
		time.Sleep(Period)
		settle(w, c)
		if got := gaugesIn(t, registry)["failed_passes"]; got != 0 {
			t.Errorf("%v passes have failed in a row, though the last did not", got)
		}
	})
}

// An event reports that the operator can't write the status, even if the pass could say that
// its step has to wait.
func TestAStatusThatIsNotWrittenIsAFailureWhateverTheStepSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clock.RealClock{}, testCluster())
		svc := served(manifest.BuildPeerService(testCluster()))
		svc.Spec.PublishNotReadyAddresses = false
		w.makeService(svc)
		w.watch()
		busy := atomic.Bool{}
		busy.Store(true)
		w.kube.PrependReactor("update", "services", func(clienttesting.Action) (bool, runtime.Object, error) { // not yet
			return busy.Load(), nil, apierrors.NewConflict(corev1.Resource("services"), "c", errors.New("it has been modified"))
		})
		up := w.refuseStatus()
		c := w.cluster(testCluster())
		defer run(t, c)()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !w.Told("Reconcile Failing: Failed repeatedly at: correct peer service: publishNotReadyAddresses: the status could not be written: ") || len(w.Events()) != 1 {
			t.Errorf("events %q, want one that reports the failure", w.Events())
		}
		up()
		busy.Store(false)
		time.Sleep(Period)
		settle(w, c)
		if st := w.etcdCluster().Status; st.Phase != api.ClusterPhaseCreating {
			t.Errorf("phase %q after the API server came back", st.Phase)
		}
	})
}
