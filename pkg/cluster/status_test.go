// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// look builds an observation from the text of a script (see TestPlan). Without a
// quorum no member knows a leader.
func look(t *testing.T, world string) *plan.Observation {
	t.Helper()
	o, err := parseWorld(strings.TrimSpace(world))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range o.Members {
		if m.Status != nil && !o.Quorum {
			m.Status.LeaderID = 0
		}
	}
	return o
}

// statusIn is the status that the operator writes in a world.
func statusIn(t *testing.T, world string) api.ClusterStatus {
	t.Helper()
	o := look(t, world)
	return statusAfter(o, plan.Plan(o), 7)
}

func conditionOf(st api.ClusterStatus, kind api.ClusterConditionType) string {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return string(c.Status) + " / " + c.Reason + " / " + c.Message
		}
	}
	return ""
}

const (
	available  = api.ClusterConditionAvailable
	recovering = api.ClusterConditionRecovering
	scaling    = api.ClusterConditionScaling
	upgrading  = api.ClusterConditionUpgrading
)

func TestConditionsSayWhatScriptsExpect(t *testing.T) {
	for name, c := range map[string]struct {
		world string
		kind  api.ClusterConditionType
		want  string // in full, or its beginning if it ends in …
	}{
		"available": {`
cluster size=3
member a leader
member b
member c`, available, "True / Cluster available / 3 of 3 voting members are healthy"},
		"available with one down": {`
cluster size=3
member a leader
member b
member c down`, available, "True / Cluster available / 2 of 3 voting members are healthy"},
		"a learner has no vote": {`
cluster size=3
member a leader
member b
member c learner`, available, "True / Cluster available / 2 of 2 voting members are healthy"},
		"creating": {`
cluster size=3 phase=Creating seed=s no-quorum
pod s seed gate`, available, "False / Cluster creating / the first member does not serve yet"},
		"the seed's image is unavailable": {`
cluster size=3 phase=Creating seed=s no-quorum
pod s seed gate badimage`, available, "False / Cluster creating / the first member does not serve yet; s: ImagePullBackOff"},
		"the quorum is lost": {`
cluster size=3 no-quorum
member a
member b gone
member c gone`, available, "False / Quorum lost / 1 of 3 voting members answer, 2 are needed: reads and writes fail until more are back; …"},
		"nobody answers": {`
cluster size=3 no-quorum
pod a started stopped`, available, "False / Quorum lost / no member answers the operator"},
		"all is lost": {`
cluster size=3 no-quorum`, available, "False / All members lost / " + plan.NoMembersLeft},
		"the spec is refused": {`
cluster size=3 phase= no-quorum invalid=size`, available, "False / Spec refused / size"},
		"scaling up": {`
cluster size=3
member a leader`, scaling, "True / Scaling up / Current cluster size: 1, desired cluster size: 3"},
		"scaling up with a learner": {`
cluster size=3
member a leader
member b learner`, scaling, "True / Scaling up / Current cluster size: 1, desired cluster size: 3"},
		"scaling down": {`
cluster size=3
member a leader
member b
member c
member d
member e`, scaling, "True / Scaling down / Current cluster size: 5, desired cluster size: 3"},
		"of the size that was asked for": {`
cluster size=1
member a leader`, scaling, ""},
		"upgrading": {`
cluster size=1 version=3.7.3
member a leader`, upgrading, "True / Cluster upgrading / upgrading to 3.7.3"},
		"upgrading with a leading v": {`
cluster size=1 version=v3.7.3
member a leader`, upgrading, "True / Cluster upgrading / upgrading to 3.7.3"},
		"no upgrade": {`
cluster size=1 version=v3.6.16
member a leader`, upgrading, ""},
		"an upgrade that is refused": {`
cluster size=1 version=3.7.3 running=3.5.35
member a leader`, upgrading, "False / Upgrade refused / the version is refused: etcd can't go from 3.5.35 to 3.7.3: …"},
		"a downgrade that is refused": {`
cluster size=1 version=3.5.35 running=3.6.16
member a leader`, upgrading, "False / Upgrade refused / the version is refused: etcd can't be downgraded from 3.6.16 to 3.5.35: …"},
		"replacing a member": {`
cluster size=3
member a leader
member b
member c gone`, recovering, "True / Replacing dead member / The dead member c is being replaced"},
		"a member that restarts is not dead": {`
cluster size=3
member a leader
member b
member c down stopped`, recovering, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := conditionOf(statusIn(t, c.world), c.kind)
			if begin, ok := strings.CutSuffix(c.want, "…"); got != c.want && !(ok && strings.HasPrefix(got, begin)) {
				t.Errorf("%s is\n  %q, want\n  %q", c.kind, got, c.want)
			}
		})
	}
}

func TestStatusOfAHealthyCluster(t *testing.T) {
	st := statusIn(t, "cluster size=3\nmember c\nmember a leader\nmember b notready")
	if st.Phase != api.ClusterPhaseRunning || st.Reason != "" || st.ObservedGeneration != 7 || st.ControlPaused {
		t.Errorf("phase %s, reason %q, generation %d, paused %t", st.Phase, st.Reason, st.ObservedGeneration, st.ControlPaused)
	}
	if st.Size != 3 || st.ReadyMembers != 2 || st.CurrentVersion != "3.6.16" || st.TargetVersion != "" {
		t.Errorf("size %d, ready %d, version %s, target %q", st.Size, st.ReadyMembers, st.CurrentVersion, st.TargetVersion)
	}
	if st.ServiceName != "c-client" || st.ClientPort != 2379 {
		t.Errorf("service %s:%d", st.ServiceName, st.ClientPort)
	}
	if !slices.Equal(st.Members.Unready, []string{"b"}) {
		t.Errorf("unready %v", st.Members.Unready)
	}
}

func TestMembersAreSortedAndOnlyThose(t *testing.T) {
	o := look(t, `
cluster size=5
member e
member b gone
member a leader
member d notready
member c deleting
pod planned gate`)
	slices.SortFunc(o.Pods, func(a, b manifest.PodState) int { return strings.Compare(a.Name, b.Name) })
	st := statusAfter(o, plan.Idle{}, 1)
	if want := []string{"a", "e"}; !slices.Equal(st.Members.Ready, want) {
		t.Errorf("ready %v, want %v", st.Members.Ready, want)
	}
	if want := []string{"b", "c", "d"}; !slices.Equal(st.Members.Unready, want) {
		t.Errorf("unready %v, want %v: members without a serving pod, no pods without a member", st.Members.Unready, want)
	}
}

func TestTheSeedStaysOnRecordWhileCreating(t *testing.T) {
	o := look(t, "cluster size=3 phase= no-quorum no-client-service")
	st := statusAfter(o, plan.ChooseSeed{Name: "c-seed"}, 1)
	if st.Phase != api.ClusterPhaseCreating || !slices.Equal(st.Members.Unready, []string{"c-seed"}) {
		t.Errorf("phase %s, members %v", st.Phase, st.Members)
	}
	o.Status = st
	o.Pods = []manifest.PodState{{Name: "c-other"}, {Name: "c-seed", Seed: true, Running: true, Ready: true}}
	st = statusAfter(o, plan.Wait{}, 1)
	if st.Phase != api.ClusterPhaseCreating || !slices.Equal(st.Members.Unready, []string{"c-seed"}) || len(st.Members.Ready) > 0 {
		t.Errorf("a pass later: phase %s, members %v, want the seed alone", st.Phase, st.Members)
	}
	if st.ServiceName != "" {
		t.Errorf("the status names the client Service %s, which does not exist", st.ServiceName)
	}
}

// An observation without an answer of any member says nothing about current changes. They are
// not over, and the next observation does not restart them.
func TestWhatIsUnderWayIsNotOverWhenNobodyAnswers(t *testing.T) {
	const blind = "\nmember a down\nmember b down\nmember c down"
	for name, c := range map[string]struct{ before, after string }{
		"an edit is followed":        {"cluster template=t size=3\nmember a leader\nmember b template=old\nmember c template=old", "cluster template=t size=3 no-quorum"},
		"an edit that is refused":    {"cluster template=t update-refused size=3\nmember a leader template=old\nmember b\nmember c", "cluster template=t update-refused size=3 no-quorum"},
		"an upgrade":                 {"cluster size=3 version=3.7.3\nmember a leader\nmember b\nmember c", "cluster size=3 version=3.7.3 no-quorum"},
		"an upgrade that is refused": {"cluster size=3 version=3.7.3 running=3.5.35\nmember a leader\nmember b\nmember c", "cluster size=3 version=3.7.3 running=3.5.35 no-quorum"},
		"nothing":                    {"cluster size=3\nmember a leader\nmember b\nmember c", "cluster size=3 no-quorum"},
	} {
		t.Run(name, func(t *testing.T) {
			was := statusIn(t, c.before)
			o := look(t, c.after+blind)
			o.Status, o.Members = was, nil
			is := statusAfter(o, plan.Plan(o), 7)
			for _, kind := range []api.ClusterConditionType{upgrading, api.ClusterConditionUpdating} {
				if conditionOf(is, kind) != conditionOf(was, kind) {
					t.Errorf("condition %s was %q and is %q", kind, conditionOf(was, kind), conditionOf(is, kind))
				}
			}
			if is.TargetVersion != was.TargetVersion || is.Reason != was.Reason {
				t.Errorf("target %q, reason %q became %q, %q", was.TargetVersion, was.Reason, is.TargetVersion, is.Reason)
			}
		})
	}
}

func TestAvailableTurnsFalseInThePassThatSeesIt(t *testing.T) {
	o := look(t, "cluster size=3\nmember a leader\nmember b\nmember c")
	o.Status = statusAfter(o, plan.Plan(o), 1)
	if got := conditionOf(o.Status, available); !strings.HasPrefix(got, "True") {
		t.Fatal(got)
	}
	lost := look(t, "cluster size=3 no-quorum\nmember a\nmember b gone\nmember c down crashing")
	lost.Status = o.Status
	lost.Pods[1].Problem = "container etcd ended with exit code 1: disk full"
	st := statusAfter(lost, plan.Plan(lost), 1)
	got := conditionOf(st, available)
	for _, part := range []string{"False / Quorum lost", "a: knows no leader: it does not reach a majority of the members", "b: its pod is gone, and its data with it", "c: container etcd ended with exit code 1: disk full"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q does not say %q", got, part)
		}
	}
	if st.Phase != api.ClusterPhaseRunning {
		t.Errorf("phase %s: members may come back", st.Phase)
	}
}

func TestPausedSaysSoAndKeepsTheRest(t *testing.T) {
	o := look(t, "cluster size=3 version=3.7.3\nmember a leader\nmember b\nmember c")
	o.Status = statusAfter(o, plan.Plan(o), 1)
	paused := look(t, "cluster size=5 version=3.6.16 paused\nmember a leader\nmember b\nmember c")
	paused.Status = o.Status
	st := statusAfter(paused, plan.Plan(paused), 2)
	if !st.ControlPaused || st.ObservedGeneration != 2 {
		t.Errorf("paused %t at generation %d", st.ControlPaused, st.ObservedGeneration)
	}
	if st.TargetVersion != "3.7.3" || conditionOf(st, upgrading) != conditionOf(o.Status, upgrading) || conditionOf(st, scaling) != "" {
		t.Errorf("target %q, conditions %v: an upgrade that was paused is neither over nor is anything begun", st.TargetVersion, st.Conditions)
	}
	paused = look(t, "cluster size=3 paused no-quorum\nmember a gone\nmember b gone\nmember c")
	paused.Status = st
	if got := conditionOf(statusAfter(paused, plan.Plan(paused), 2), available); !strings.HasPrefix(got, "False") {
		t.Errorf("Available is %q: a pause hides nothing", got)
	}
	resumed := look(t, "cluster size=3\nmember a leader\nmember b\nmember c")
	resumed.Status = st
	if st := statusAfter(resumed, plan.Plan(resumed), 3); st.ControlPaused || conditionOf(st, upgrading) != "" {
		t.Errorf("resumed: %+v", st)
	}
}

func TestRefusalsComeAndGo(t *testing.T) {
	o := look(t, "cluster size=3 version=3.7.3 running=3.5.35\nmember a leader\nmember b\nmember c")
	st := statusAfter(o, plan.Plan(o), 1)
	if !strings.HasPrefix(st.Reason, "the version is refused: ") || st.TargetVersion != "" || st.Phase != api.ClusterPhaseRunning {
		t.Errorf("phase %s, reason %q, target %q", st.Phase, st.Reason, st.TargetVersion)
	}
	o.Spec.Version, o.Status = "3.5.35", st
	if st := statusAfter(o, plan.Plan(o), 2); st.Reason != "" || conditionOf(st, upgrading) != "" {
		t.Errorf("taken back: reason %q, %q", st.Reason, conditionOf(st, upgrading))
	}
	o.Invalid = "spec.size: 9"
	st = statusAfter(o, plan.Plan(o), 3)
	if st.Reason != "the spec is refused: spec.size: 9" || !strings.HasPrefix(conditionOf(st, available), "True") {
		t.Errorf("reason %q, available %q: etcd still serves", st.Reason, conditionOf(st, available))
	}
}

func TestFailedKeepsItsReason(t *testing.T) {
	o := look(t, "cluster size=3 no-quorum")
	o.Status = statusAfter(o, plan.Plan(o), 1)
	if o.Status.Phase != api.ClusterPhaseFailed || o.Status.Reason != plan.NoMembersLeft || o.Status.Size != 0 {
		t.Fatalf("phase %s, reason %q, size %d", o.Status.Phase, o.Status.Reason, o.Status.Size)
	}
	for _, invalid := range []string{"", "spec.size: 9", ""} {
		o.Invalid = invalid
		o.Status = statusAfter(o, plan.Plan(o), 2)
		if o.Status.Phase != api.ClusterPhaseFailed || o.Status.Reason != plan.NoMembersLeft {
			t.Errorf("with the spec's error %q: phase %s, reason %q", invalid, o.Status.Phase, o.Status.Reason)
		}
	}
	back := look(t, "cluster size=3 phase=Failed\nmember a leader\nmember b\nmember c")
	back.Status = o.Status
	if st := statusAfter(back, plan.Plan(back), 2); st.Phase != api.ClusterPhaseRunning || st.Reason != "" {
		t.Errorf("members that come back: phase %s, reason %q", st.Phase, st.Reason)
	}
}

func TestRecoveringLastsUntilTheSizeIsWhole(t *testing.T) {
	var st api.ClusterStatus
	for i, c := range []struct {
		world      string
		recovering bool
	}{
		{"cluster size=3\nmember a leader\nmember b\nmember c gone", true},
		{"cluster size=3\nmember a leader\nmember b", true},
		{"cluster size=3\nmember a leader\nmember b\nmember d learner", true},
		{"cluster size=3\nmember a leader\nmember b\nmember d", false},
		{"cluster size=3\nmember a leader\nmember b\nmember d gone", true},
		{"cluster size=3 no-quorum", false}, // all are lost: the operator replaces no member
	} {
		o := look(t, c.world)
		if i > 0 {
			o.Status = st
		}
		st = statusAfter(o, plan.Plan(o), 1)
		if got := conditionOf(st, recovering); (got != "") != c.recovering {
			t.Errorf("after\n%s\nRecovering is %q", c.world, got)
		}
		if got := conditionOf(st, scaling); got != "" {
			t.Errorf("after\n%s\nScaling is %q: a replacement is no change of size", c.world, got)
		}
	}
}

func TestTransitionTimeChangesWithTheStatusAlone(t *testing.T) {
	at := func(minute int) string { return noon.Add(time.Duration(minute) * time.Minute).Format(time.RFC3339) }
	set := func(st *api.ClusterStatus, minute int, status corev1.ConditionStatus, message string) api.ClusterCondition {
		setCondition(st, at(minute), api.ClusterCondition{Type: available, Status: status, Reason: "r", Message: message})
		return st.Conditions[0]
	}
	var st api.ClusterStatus
	for i, c := range []struct {
		status             corev1.ConditionStatus
		message            string
		update, transition int
	}{
		{corev1.ConditionTrue, "3 of 3", 0, 0},
		{corev1.ConditionTrue, "3 of 3", 0, 0}, // nothing new
		{corev1.ConditionTrue, "2 of 3", 2, 0},
		{corev1.ConditionFalse, "1 of 3", 3, 3},
		{corev1.ConditionTrue, "3 of 3", 4, 4},
	} {
		got := set(&st, i, c.status, c.message)
		if got.LastUpdateTime != at(c.update) || got.LastTransitionTime != at(c.transition) || got.Message != c.message {
			t.Errorf("write %d: %+v, want it updated at %s and turned at %s", i, got, at(c.update), at(c.transition))
		}
	}
	if len(st.Conditions) != 1 {
		t.Errorf("conditions %v", st.Conditions)
	}
}

func TestStatusAfterLeavesTheObservationAlone(t *testing.T) {
	o := look(t, "cluster size=3\nmember a leader\nmember b\nmember c gone")
	o.Status = statusAfter(o, plan.Plan(o), 1)
	before := *o.Status.DeepCopy()
	later := look(t, "cluster size=3 no-quorum\nmember a\nmember b gone\nmember c gone")
	later.Now, later.Status = noon.Add(time.Hour), o.Status
	statusAfter(later, plan.Plan(later), 2)
	if !reflect.DeepEqual(o.Status, before) {
		t.Errorf("the old status was changed to %+v", o.Status)
	}
}
