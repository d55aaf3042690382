// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/readiness/readinesstest"
)

// judged is what kstatus makes of the status in a world: the condition that is True, and
// its reason.
func judged(t *testing.T, o *plan.Observation) (condition, reason string, st api.ClusterStatus) {
	t.Helper()
	step := plan.Plan(o)
	st = statusAfter(o, step, 7)
	obj := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", Generation: 7}, Spec: o.Spec, Status: st}
	condition, reason, err := readinesstest.Judge(obj)
	if err != nil {
		t.Errorf("step %s: %v", step, err)
	}
	return condition, reason, st
}

// eachWorld runs a test for each world of the scripts of TestPlan.
func eachWorld(t *testing.T, test func(t *testing.T, world string)) {
	files, err := filepath.Glob("testdata/plan/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range strings.Split(strings.TrimSpace(string(script)), "\n\n") {
			world, _, _ := strings.Cut(c, "\n----")
			t.Run(fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(file), ".txt"), i+1), func(t *testing.T) { test(t, world) })
		}
	}
}

func TestKstatusUnderstandsEachStateOfACluster(t *testing.T) {
	counts := map[string]int{}
	eachWorld(t, func(t *testing.T, world string) {
		condition, reason, st := judged(t, look(t, world))
		counts[condition]++
		o := look(t, world)
		step := plan.Plan(o)
		idle, idles := step.(plan.Idle)
		serves := conditionIsTrue(&st, available)
		switch {
		case condition != api.ConditionReady:
		case !serves:
			t.Errorf("Ready (%s) in this world, and the cluster does not serve\n%s", reason, world)
		case st.ReadyMembers != o.Spec.Size || len(st.Members.Unready) > 0:
			t.Errorf("Ready (%s) in this world, with %d of %d members\n%s", reason, st.ReadyMembers, o.Spec.Size, world)
		case !idles || idle.Why.Kind != plan.AsSpecified && idle.Why.Kind != plan.Paused:
			t.Errorf("Ready (%s) in this world, and the operator is to do: %s\n%s", reason, step, world)
		}
		for _, t2 := range []api.ClusterConditionType{scaling, upgrading, recovering, api.ClusterConditionUpdating} {
			if condition == api.ConditionReady && conditionIsTrue(&st, t2) {
				t.Errorf("Ready and %s in this world\n%s", t2, world)
			}
		}
	})
	for _, condition := range []string{api.ConditionReady, api.ConditionReconciling, api.ConditionStalled} {
		if counts[condition] < 10 {
			t.Errorf("only %d worlds are %s: %v", counts[condition], condition, counts)
		}
	}
}

// A second pass over the same world must write nothing, or the operator would never rest.
func TestThreeConditionsSettleInOnePass(t *testing.T) {
	eachWorld(t, func(t *testing.T, world string) {
		o := look(t, world)
		_, _, first := judged(t, o)
		o = look(t, world)
		phase := o.Status.Phase
		if first.Phase != phase {
			return // the next pass is in another phase
		}
		o.Status = *first.DeepCopy()
		o.Now = o.Now.Add(time.Second)
		_, _, second := judged(t, o)
		for _, t2 := range []api.ClusterConditionType{api.ClusterConditionReady, api.ClusterConditionReconciling, api.ClusterConditionStalled} {
			a, b := first.Condition(t2), second.Condition(t2)
			if a.Status == b.Status && a.LastTransitionTime != b.LastTransitionTime {
				t.Errorf("%s keeps its status and has another time of its last transition\n%s", t2, world)
			}
		}
	})
}

func TestReadyReconcilingAndStalled(t *testing.T) {
	const whole = "\nmember a leader\nmember b\nmember c"
	const old = "\nmember a leader template=old\nmember b template=old\nmember c template=old"
	long := func(o *plan.Observation) {
		o.Standstill, o.StandstillSince = "for something", o.Now.Add(-10*time.Minute)
	}
	for name, c := range map[string]struct {
		world  string
		change func(*plan.Observation)
		want   string
	}{
		"as specified":                           {"cluster size=3" + whole, nil, "Ready AsSpecified"},
		"a member restarts":                      {"cluster size=3\nmember a leader\nmember b\nmember c down stopped", nil, "Reconciling MemberUnhealthy"},
		"a member is not ready":                  {"cluster size=3\nmember a leader\nmember b\nmember c notready", nil, "Reconciling MemberUnready"},
		"a member is replaced":                   {"cluster size=3\nmember a leader\nmember b\nmember c gone", nil, "Reconciling Recovering"},
		"growing":                                {"cluster size=3\nmember a leader", nil, "Reconciling Scaling"},
		"shrinking":                              {"cluster size=1" + whole, nil, "Reconciling Scaling"},
		"upgrading":                              {"cluster size=3 version=3.7.3" + whole, nil, "Reconciling Upgrading"},
		"updating":                               {"cluster size=3 template=new" + old, nil, "Reconciling Updating"},
		"creating":                               {"cluster size=3 phase=Creating seed=s no-quorum\npod s seed gate", nil, "Reconciling ClusterCreating"},
		"restoring":                              {"cluster size=3 phase=Creating seed=s no-quorum restore=b\npod s seed gate", nil, "Reconciling Restoring"},
		"the quorum is lost":                     {"cluster size=3 no-quorum\nmember a\nmember b gone\nmember c gone", nil, "Reconciling QuorumLost"},
		"the quorum is lost for long":            {"cluster size=3 no-quorum\nmember a\nmember b gone\nmember c gone", long, "Stalled NoProgress"},
		"all is lost":                            {"cluster size=3 no-quorum", nil, "Stalled AllMembersLost"},
		"data were lost":                         {"cluster size=3 record-index=9000 index=5000" + whole, nil, "Stalled DataWentBack"},
		"the spec is invalid":                    {"cluster size=3 invalid=size" + whole, nil, "Stalled SpecRefused"},
		"a part of the spec is refused":          {"cluster size=3 tolerated=etcdEnv" + whole, nil, "Stalled SpecRefused"},
		"and a member is lost":                   {"cluster size=3 tolerated=etcdEnv certificates=missing" + whole, nil, "Stalled CertificatesUnusable"},
		"the version is refused":                 {"cluster size=3 version=3.7.3 running=3.5.35" + whole, nil, "Stalled VersionRefused"},
		"an update is refused":                   {"cluster size=3 template=new update-refused" + old, nil, "Stalled UpdateRefused"},
		"pods are refused":                       {"cluster size=5 refused=quota" + whole, nil, "Stalled PodsRefused"},
		"certificates are missing":               {"cluster size=5 certificates=missing" + whole, nil, "Stalled CertificatesUnusable"},
		"members refuse their certificate":       {"cluster size=3 template=new certificates=refused" + old, nil, "Stalled CertificatesUnusable"},
		"the annotation of a restore is unread":  {"cluster size=3 phase= no-quorum restore=unreadable", nil, "Stalled RestoreHeld"},
		"the image is another version's":         {"cluster version=3.5.35 running=3.5.34 mislabelled=3.5.21\nmember a leader\nmember b version=3.5.35 runs=3.5.21\nmember c", nil, "Stalled WrongImage"},
		"no space is left":                       {"cluster size=3\nmember a leader alarms=1:NOSPACE\nmember b\nmember c", nil, "Stalled OutOfSpace"},
		"paused as specified":                    {"cluster size=3 paused" + whole, nil, "Ready Paused"},
		"paused with another size":               {"cluster size=5 paused" + whole, nil, "Stalled Paused"},
		"paused with another version":            {"cluster size=3 paused version=3.7.3" + whole, nil, "Stalled Paused"},
		"paused with an edit of the template":    {"cluster size=3 paused template=new" + old, nil, "Stalled Paused"},
		"paused without a quorum":                {"cluster size=3 paused no-quorum\nmember a\nmember b gone\nmember c gone", nil, "Stalled Paused"},
		"a detail is to be corrected after edit": {"cluster size=3 client-service=edited:ports" + whole, nil, "Reconciling Progressing"},
		"a detail is corrected": {"cluster size=3 client-service=edited:ports" + whole, func(o *plan.Observation) {
			o.Status.ObservedGeneration = 7
			o.Status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionReady, Status: corev1.ConditionTrue, Message: "as it was"}}
		}, "Ready AsSpecified"},
		"the members elect a leader": {"cluster size=3 no-quorum\nmember a\nmember b\nmember c", func(o *plan.Observation) {
			o.LeaderlessSince = o.Now.Add(-time.Second)
			o.Status.ObservedGeneration = 7
			o.Status.Conditions = []api.ClusterCondition{
				{Type: available, Status: corev1.ConditionTrue, Reason: "Cluster available"},
				{Type: api.ClusterConditionReady, Status: corev1.ConditionTrue, Reason: "AsSpecified", Message: "as it was"},
				{Type: api.ClusterConditionReconciling, Status: corev1.ConditionFalse, Reason: "AsSpecified"},
				{Type: api.ClusterConditionStalled, Status: corev1.ConditionFalse, Reason: "AsSpecified"},
			}
		}, "Ready AsSpecified"},
		"something takes longer": {"cluster size=3" + whole, func(o *plan.Observation) {
			o.Standstill, o.StandstillSince = "for something", o.Now.Add(-time.Minute)
		}, "Reconciling Waiting"},
		"something takes too long":                  {"cluster size=3" + whole, long, "Stalled NoProgress"},
		"a copy takes long":                         {"cluster size=3\nmember a leader\nmember b\nmember c learner copying=1h", long, "Reconciling Waiting"},
		"a member is unwell and cannot be replaced": {"cluster size=3\nmember a leader\nmember b\nmember c unheard", nil, "Stalled MemberUnhealthy"},
	} {
		t.Run(name, func(t *testing.T) {
			o := look(t, c.world)
			if c.change != nil {
				c.change(o)
			}
			condition, reason, st := judged(t, o)
			if got := condition + " " + reason; got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, conditionOf(st, api.ClusterConditionReady))
			}
		})
	}
}

func TestKstatusWaitsForTheOperatorToSeeAnEdit(t *testing.T) {
	_, _, st := judged(t, look(t, "cluster size=3\nmember a leader\nmember b\nmember c"))
	got, err := readinesstest.Kstatus(&api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Generation: 8}, Status: st})
	if err != nil || got != "InProgress" {
		t.Errorf("kstatus says %s (%v) of an edit that the operator has not seen", got, err)
	}
}

func TestConditionsOfEarlierReleasesStay(t *testing.T) {
	st := statusIn(t, "cluster size=3\nmember a leader")
	for _, kind := range []api.ClusterConditionType{available, scaling} {
		if !slices.ContainsFunc(st.Conditions, func(c api.ClusterCondition) bool { return c.Type == kind && strings.Contains(c.Reason, " ") }) {
			t.Errorf("%s is not as before: %v", kind, st.Conditions)
		}
	}
}

func TestScaleFindsThePodsOfACluster(t *testing.T) {
	if st := statusIn(t, "cluster size=1\nmember a leader"); st.Selector != "app=etcd,etcd_cluster=c" {
		t.Errorf("selector %q", st.Selector)
	}
}
