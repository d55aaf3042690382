// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
)

const upgradeToAWrongImage = `
cluster version=3.5.35 running=3.5.34
member a leader
member b version=3.5.35 runs=3.5.21 previous=3.5.34
member c`

// learned is what a look at a world leads to, and then another after a while.
func learned(t *testing.T, l mislabels, world string, after time.Duration) (*plan.Observation, api.ClusterStatus) {
	t.Helper()
	o := look(t, world)
	o.Now = o.Now.Add(after)
	o.Mislabels = l.learn(o)
	return o, statusAfter(o, plan.Plan(o), 1)
}

func TestAnUpgradeToAMislabelledImageStops(t *testing.T) {
	l := newMislabels()
	o, st := learned(t, l, upgradeToAWrongImage, 0)
	if got := plan.Plan(o).String(); got != "wait: for b to restart as 3.5.35" || st.Reason != "" {
		t.Errorf("at first the plan is %q, reason %q: the kubelet may not have restarted it yet", got, st.Reason)
	}
	o, st = learned(t, l, upgradeToAWrongImage, restartPatience)
	if _, ok := plan.Plan(o).(plan.Idle); !ok {
		t.Errorf("then the plan is %q", plan.Plan(o))
	}
	for _, want := range []string{"quay.io/coreos/etcd:v3.5.35", "3.5.21", "spec.repository"} {
		if !strings.Contains(st.Reason, want) {
			t.Errorf("the reason %q does not name %s", st.Reason, want)
		}
	}
	if got := conditionOf(st, upgrading); !strings.HasPrefix(got, "False / Upgrade stopped / ") || st.TargetVersion != "" {
		t.Errorf("Upgrading is %q, the target version %q", got, st.TargetVersion)
	}

	// The operator follows another version, or another repository.
	for _, edited := range []string{"cluster version=3.5.34 running=3.5.34", "cluster version=3.5.36 running=3.5.34"} {
		o, st = learned(t, l, strings.Replace(upgradeToAWrongImage, "cluster version=3.5.35 running=3.5.34", edited, 1), restartPatience+time.Second)
		if _, ok := plan.Plan(o).(plan.SetVersion); !ok || st.Reason != "" {
			t.Errorf("%s: the plan is %q, reason %q", edited, plan.Plan(o), st.Reason)
		}
	}
	// Somebody corrects the image, and the operator recreates the pod.
	o, st = learned(t, l, strings.Replace(upgradeToAWrongImage, "runs=3.5.21", "runs=3.5.35", 1), 2*restartPatience)
	if _, ok := plan.Plan(o).(plan.SetVersion); !ok || st.Reason != "" || st.TargetVersion != "3.5.35" {
		t.Errorf("in the end the plan is %q, reason %q, target %q", plan.Plan(o), st.Reason, st.TargetVersion)
	}
}

// The operator knows the version of a pod that began with this image at once.
func TestAClusterOnAMislabelledImageIsToldOf(t *testing.T) {
	o, st := learned(t, newMislabels(), `
cluster version=3.5.35 running=3.5.35
member a leader runs=3.5.21
member b runs=3.5.21
member c runs=3.5.21`, 0)
	if _, ok := plan.Plan(o).(plan.Idle); !ok || !strings.HasPrefix(st.Reason, "the tag of an image is wrong: ") || st.TargetVersion != "" || st.CurrentVersion != "3.5.21" {
		t.Errorf("the plan is %q, reason %q, versions %q to %q", plan.Plan(o), st.Reason, st.CurrentVersion, st.TargetVersion)
	}
}
