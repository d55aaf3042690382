// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

// refusedToday has a setting that v0.9.4 accepted.
func refusedToday() *api.EtcdCluster {
	obj := testCluster()
	obj.Spec.Pod = &api.PodPolicy{EtcdEnv: []corev1.EnvVar{{Name: "ETCD_FORCE_NEW_CLUSTER", Value: "true"}, {Name: "ETCD_PRE_VOTE", Value: "true"}}}
	return obj
}

func TestARunningClusterWithARefusedSpecIsCaredFor(t *testing.T) {
	obj := refusedToday()
	obj.Status = runningStatus()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	c := w.cluster(obj)
	for range 2 { // it stays so
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if o.Invalid != "" || !strings.Contains(o.Tolerated, "etcdEnv") {
			t.Fatalf("invalid: %q, tolerated: %q", o.Invalid, o.Tolerated)
		}
		if s := plan.Plan(o).String(); s != "create peer service" {
			t.Errorf("the operator's step is %q", s)
		}
		if env := o.Spec.Pod.EtcdEnv; len(env) != 1 || env[0].Name != "ETCD_PRE_VOTE" {
			t.Errorf("a new member would have the settings %v", env)
		}
		st := runningStatus()
		st.Size += int(w.version.Load())
		if err := c.writeStatus(t.Context(), st); err != nil {
			t.Fatal(err)
		}
		if n := len(w.etcdCluster().Spec.Pod.EtcdEnv); n != 2 {
			t.Errorf("the user's spec was changed: it has %d settings", n)
		}
	}
	corrected := w.etcdCluster()
	corrected.Spec.Pod, corrected.Generation = nil, 2
	c.take(corrected)
	if o, err := c.observe(t.Context()); err != nil || o.Invalid+o.Tolerated != "" {
		t.Errorf("after a correction: %v, %q", err, o.Invalid+o.Tolerated)
	}
}

func TestANewClusterWithARefusedSpecDoesNotBegin(t *testing.T) {
	c := newWorld(t, clocktesting.NewFakeClock(noon), refusedToday()).cluster(refusedToday())
	o, err := c.observe(t.Context())
	if err != nil || !strings.Contains(o.Invalid, "etcdEnv") || o.Tolerated != "" {
		t.Errorf("%v: invalid: %q, tolerated: %q", err, o.Invalid, o.Tolerated)
	}
}

// The status of such a cluster may be lost, and its members run.
func TestARefusedSpecDoesNotHideThatTheClusterRuns(t *testing.T) {
	o := look(t, "cluster size=3 phase= invalid=etcdEnv\nmember a leader\nmember b\nmember c")
	if s := plan.Plan(o).String(); s != "mark running" {
		t.Errorf("the operator's step is %q", s)
	}
}

func TestTheStatusSaysWhatIsRefusedInARunningCluster(t *testing.T) {
	st := statusIn(t, "cluster size=3 tolerated=etcdEnv\nmember a leader\nmember b\nmember c")
	if !strings.HasPrefix(st.Reason, "the spec is refused: etcdEnv. The operator manages the running cluster") {
		t.Errorf("reason %q", st.Reason)
	}
	gone := look(t, "cluster size=3 tolerated=etcdEnv\nmember a leader\nmember b\nmember c gone")
	if s := plan.Plan(gone).String(); !strings.HasPrefix(s, "remove member c") {
		t.Errorf("with a lost member, the operator's step is %q", s)
	}
}
