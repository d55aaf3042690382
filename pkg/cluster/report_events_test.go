// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// reasons are those of the events since the last call.
func (w *world) reasons() []string {
	var reasons []string
	for _, e := range w.Events() {
		reason, _, _ := strings.Cut(e, ":")
		reasons = append(reasons, reason)
	}
	w.Forget()
	return reasons
}

func TestLostQuorumsAndAlarmsAreToldOnceEach(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	var st api.ClusterStatus
	healthy, lost := "cluster size=3\nmember a leader\nmember b\nmember c", "cluster size=3 no-quorum\nmember a\nmember b down\nmember c down"
	for i, s := range []struct {
		world  string
		alarms []etcd.Alarm
		want   []string
	}{
		{healthy, nil, []string{"Quorum Restored"}},
		{healthy, nil, nil},
		{lost, nil, []string{"Quorum Lost"}},
		{lost, nil, nil},
		{healthy, nil, []string{"Quorum Restored"}},
		{healthy, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}, []string{"Alarm Raised"}},
		{healthy, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}, nil},
		{healthy, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}, {MemberID: 2, Type: etcd.AlarmNoSpace}}, []string{"Alarm Raised"}},
		{lost, nil, []string{"Quorum Lost"}},
		{healthy, []etcd.Alarm{{MemberID: 1, Type: etcd.AlarmNoSpace}}, []string{"Quorum Restored", "Alarm Raised"}},
		{healthy, nil, []string{"Alarm Cleared"}},
	} {
		o := look(t, s.world)
		o.Status = st
		if i == 0 {
			o.Status.Phase = api.ClusterPhaseRunning
		}
		o.Members[0].Status.Alarms = s.alarms
		next := statusAfter(o, plan.Idle{}, 1)
		c.notices.statusChanged(o.Status, next)
		st = next
		if got := w.reasons(); !slices.Equal(got, s.want) {
			t.Errorf("step %d: events %q, want %q", i+1, got, s.want)
		}
	}
}

func TestAWarningAboutASpecIsToldOnceForEachEdit(t *testing.T) {
	even := testCluster()
	even.Generation, even.Spec.Size = 1, 2
	w := newWorld(t, clocktesting.NewFakeClock(noon), even)
	c := w.cluster(even)
	for i, want := range [][]string{{"Spec Warning"}, nil} {
		c.notices.look(look(t, "cluster size=2\nmember a leader\nmember b"))
		if got := w.reasons(); !slices.Equal(got, want) {
			t.Errorf("look %d: events %q, want %q", i+1, got, want)
		}
	}
	edited := even.DeepCopy()
	edited.Generation = 2
	c.notices.Object = edited
	c.notices.look(look(t, "cluster size=2\nmember a leader\nmember b"))
	if got := w.reasons(); !slices.Equal(got, []string{"Spec Warning"}) {
		t.Errorf("after an edit: events %q", got)
	}
}

func TestAMemberThatStaysUnhealthyIsToldAndItsRecovery(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	for _, s := range []struct {
		world string
		down  time.Duration
		want  []string
	}{
		{"cluster size=3\nmember a leader\nmember b\nmember c", 0, nil},
		{"cluster size=3\nmember a leader\nmember b\nmember c down", time.Second, nil}, // a restart
		{"cluster size=3\nmember a leader\nmember b\nmember c down", unhealthyAfter, []string{"Member Unhealthy"}},
		{"cluster size=3\nmember a leader\nmember b\nmember c down", time.Hour, nil},
		{"cluster size=3 no-quorum\nmember a\nmember b down\nmember c down", time.Hour, nil}, // reported as lost quorum
		{"cluster size=3\nmember a leader\nmember b\nmember c", 0, []string{"Member Recovered"}},
		{"cluster size=3\nmember a leader\nmember b\nmember c", 0, nil},
		{"cluster size=3\nmember a leader\nmember b\nmember c down badimage", time.Hour, nil}, // reported as stuck
		{"cluster size=3\nmember a leader\nmember b\nmember c gone", time.Hour, nil},          // replaced
		{"cluster size=3\nmember a leader\nmember b\nmember x foreign", time.Hour, nil},
	} {
		o := look(t, s.world)
		for i := range o.Members {
			if !o.Members[i].Healthy() {
				o.Members[i].DownSince = o.Now.Add(-s.down)
			}
		}
		c.notices.look(o)
		if got := w.reasons(); !slices.Equal(got, s.want) {
			t.Errorf("in the world\n%s\nfor %v: events %q, want %q", s.world, s.down, got, s.want)
		}
	}
}

// The kubelet alternates every ten seconds or more between pulling an image and waiting. After
// an edit of the image, it also says that the former container has ended. If each change
// restarted the clock, the operator would never report the trouble.
func TestAPodWhoseTroubleIsToldInTurnsIsTold(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	var (
		never   corev1.ContainerState
		passed  = ended(0, "")
		gone    = ended(0, "")
		pull    = waiting("ErrImagePull", "3.6.99: not found")
		backOff = waiting("ImagePullBackOff", "back-off 10s: 3.6.99: not found")
		former  = waiting("CrashLoopBackOff", "back-off 10s restarting failed container=etcd")
		gate    = waiting("ErrImagePull", "operator: not found")
	)
	for i, s := range []struct {
		checkDNS, etcd corev1.ContainerState
		told           string
	}{
		{passed, pull, ""},
		{passed, backOff, ""},
		{passed, pull, "3.6.99: not found"},
		{passed, backOff, ""},
		{passed, former, "CrashLoopBackOff"},
		{passed, pull, ""},
		{passed, former, ""},
		{passed, runs(), ""},
		{passed, pull, ""},
		{gate, waiting("PodInitializing", ""), ""},
		{passed, pull, "3.6.99: not found"},
		{gate, waiting("PodInitializing", ""), "operator: not found"},
		{gate, waiting("PodInitializing", ""), ""},
	} {
		pod := memberPod(t, testCluster(), "c-a")
		kubelet(pod, s.checkDNS, never, s.etcd, gone, 0)
		w.Forget()
		c.notices.look(&plan.Observation{Now: noon.Add(time.Duration(i) * 8 * time.Second), Pods: []manifest.PodState{manifest.PodStateOf(pod)}})
		told := strings.Join(w.Events(), "\n")
		if (told != "") != (s.told != "") || !strings.Contains(told, s.told) {
			t.Errorf("look %d: reported %q, want %q", i, told, s.told)
		}
	}
}

// The kind of a reason decides which event reports it. Neither the text nor another text
// of the same standstill does.
func TestReasonsOfTheStatusAreToldByTheirKind(t *testing.T) {
	const cluster = "cluster version=%s running=3.6.16\nmember a leader\nmember b\nmember c"
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	st := runningStatus()
	for i, s := range []struct {
		version, invalid, standstill, unreadable string
		phase                                    api.ClusterPhase
		want                                     []string
	}{
		{version: "3.6.16"},
		{version: "3.6.16", invalid: "it has no size", want: []string{"Spec Refused"}},
		{version: "3.6.16", invalid: "it has no size"},
		{version: "3.5.35", want: []string{"Spec Refused"}},
		{version: "3.6.16", standstill: "for a", want: []string{"Standstill"}},
		{version: "3.6.16", standstill: "for b"},
		{version: "3.6.16"},
		{version: "3.6.16", standstill: "for a", want: []string{"Standstill"}},
		{version: "3.6.16", phase: api.ClusterPhaseCreating, unreadable: "it is no JSON", want: []string{"Restore Held"}},
		{version: "3.6.16", phase: api.ClusterPhaseFailed},
	} {
		o := look(t, fmt.Sprintf(cluster, s.version))
		o.Status, o.Invalid, o.Standstill, o.SourceUnreadable = st, s.invalid, s.standstill, s.unreadable
		o.Status.Phase = cmp.Or(s.phase, api.ClusterPhaseRunning)
		next := st
		c.notices.reason = statusReason(o, plan.Wait{}, o.Status.Phase)
		next.Reason = c.notices.reason.String()
		c.notices.statusChanged(st, next)
		st = next
		if got := w.reasons(); !slices.Equal(got, s.want) {
			t.Errorf("step %d: events %q of %q, want %q", i+1, got, next.Reason, s.want)
		}
	}
	o := look(t, upgradeToAWrongImage)
	o.Mislabels = map[string]string{o.Image(o.Spec.EffectiveVersion()): "3.5.21"}
	c.notices.reason = statusReason(o, plan.Wait{}, o.Status.Phase)
	next := st
	next.Reason = c.notices.reason.String()
	c.notices.statusChanged(st, next)
	if got := w.reasons(); !slices.Equal(got, []string{"Wrong Image"}) {
		t.Errorf("events %q of %q", got, next.Reason)
	}
}
