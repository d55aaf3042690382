// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/tunnel"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// cluster is one of n members that are well, the first of which leads, each on a node and
// in a zone of its own.
func cluster(n int) *observe.Cluster {
	c := &observe.Cluster{
		Time: now, Agreed: true, Zones: map[string]string{},
		Object: &api.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "default"},
			Spec:       api.ClusterSpec{Size: n},
			Status:     api.ClusterStatus{Phase: api.ClusterPhaseRunning, CurrentVersion: "3.7.3"},
		},
	}
	for i := range n {
		name, node, id := fmt.Sprintf("orders-%d", i), fmt.Sprintf("n%d", i), uint64(i+1) // small
		c.Zones[node] = fmt.Sprintf("z%d", i)
		c.Members = append(c.Members, etcd.Member{ID: id, Name: name})
		c.Pods = append(c.Pods, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{NodeName: node},
			Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "etcd", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
		})
		c.Answers = append(c.Answers, observe.Answer{Pod: name, Status: etcd.Status{
			MemberID: id, LeaderID: 1, Version: "3.7.3", DBSize: 100 << 20, DBInUse: 90 << 20, DBQuota: 2 << 30, RaftIndex: 50, RaftApplied: 50,
		}})
	}
	return c
}

func TestAWholeClusterServes(t *testing.T) {
	for n, tolerates := range map[int]int{1: 0, 3: 1, 4: 1, 5: 2} {
		s := Of(cluster(n), nil)
		if s.State != Serving || s.Tolerates != tolerates || s.Leader != "orders-0" || len(s.Reasons) > 0 {
			t.Errorf("%d members: %s, tolerates %d, leader %s, %q", n, s.State, s.Tolerates, s.Leader, s.Reasons)
		}
	}
}

func TestALearnerHasNoVote(t *testing.T) {
	c := cluster(3)
	c.Members[2].Learner = true
	c.Answers[2].Status.Learner = true
	c.Answers[2].Commits = errors.New("a learner serves no such reads")
	s := Of(c, nil)
	if s.Voters != 2 || s.Healthy != 2 || s.Members[2].Role != Learner || !s.Members[2].Healthy {
		t.Errorf("%d of %d voters are healthy, the learner is %+v", s.Healthy, s.Voters, s.Members[2])
	}
	if s.State != Degraded {
		t.Errorf("the state is %s with two voters of three", s.State)
	}
}

func TestAPodThatStartsIsNoMember(t *testing.T) {
	c := cluster(3)
	c.Members, c.Answers = c.Members[:2], c.Answers[:2]
	c.Pods[2].Status = corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
		Name: "check-dns", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}},
	}}}
	m := Of(c, nil).Members[2]
	if m.Role != NoMember || m.Votes() || m.Problem != "check-dns: ImagePullBackOff: no such image" {
		t.Errorf("it is %+v", m)
	}
}

func TestTheFirstPodOfAClusterStarts(t *testing.T) {
	c := cluster(1)
	c.Members, c.Answers, c.Object.Status = nil, nil, api.ClusterStatus{Phase: api.ClusterPhaseCreating}
	c.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodPending}
	s := Of(c, nil)
	if s.State != Down || s.Members[0].Problem != "its pod starts" {
		t.Errorf("%s, %+v", s.State, s.Members)
	}
}

func TestAdvice(t *testing.T) {
	days := func(n int) *metav1.Time { at := metav1.NewTime(now.AddDate(0, 0, n)); return &at }
	for name, test := range map[string]struct {
		change func(*observe.Cluster)
		want   string
	}{
		"two voters on a node":   {func(c *observe.Cluster) { c.Pods[1].Spec.NodeName = "n0" }, "2 of 3 voters run in the node n0: its loss takes the quorum"},
		"two voters in a zone":   {func(c *observe.Cluster) { c.Zones["n1"] = "z0" }, "2 of 3 voters run in the zone z0"},
		"a database nearly full": {func(c *observe.Cluster) { c.Answers[1].Status.DBSize = 1700 << 20 }, "orders-1: the database fills 83 % of its quota of 2.0Gi"},
		"a fragmented database":  {func(c *observe.Cluster) { c.Answers[1].Status.DBSize, c.Answers[1].Status.DBInUse = 1000<<20, 100<<20 }, "orders-1: 900.0Mi of the database are free"},
		"etcd restarts":          {func(c *observe.Cluster) { c.Pods[1].Status.ContainerStatuses[0].RestartCount = 7 }, "orders-1: etcd has restarted 7 times"},
		"an edit that nobody sees": {func(c *observe.Cluster) {
			c.Object.Generation, c.Object.CreationTimestamp = 2, *days(-1)
		}, "no operator has looked at the last edit"},
		"an even size": {func(c *observe.Cluster) { c.Object.Spec.Size = 4 }, "size 4 tolerates no more losses than size 3"},
		"no backup":    {func(*observe.Cluster) {}, "no EtcdBackup names this cluster"},
		"a failed backup": {func(c *observe.Cluster) {
			c.Backups = []api.EtcdBackup{{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Status: api.BackupStatus{Phase: api.BackupPhaseRetrying, Reason: "no bucket"}}}
		}, "backup nightly fails: no bucket"},
		"an overdue backup": {func(c *observe.Cluster) {
			c.Backups = []api.EtcdBackup{{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Status: api.BackupStatus{Phase: api.BackupPhaseWaiting, Succeeded: true, NextExecutionDate: days(-1)}}}
		}, "backup nightly is overdue since 2026-11-21T12:00:00Z"},
		"a certificate that can't be read": {func(c *observe.Cluster) {
			c.Certificates = []observe.Certificate{{Use: "server", Secret: "s", Err: errors.New("Secret s: lacks server.key")}}
		}, "Secret s: lacks server.key"},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(3)
			test.change(c)
			if got := strings.Join(Of(c, nil).Advice, "\n"); !strings.Contains(got, test.want) {
				t.Errorf("%q is missing in %q", test.want, got)
			}
		})
	}
}

func TestSlowWritesOfThePastAreForgotten(t *testing.T) {
	slow := observe.Histogram{{Limit: 0.001, Count: 0}, {Limit: 0.064, Count: 100}}
	more := observe.Histogram{{Limit: 0.001, Count: 50}, {Limit: 0.064, Count: 150}}
	before, after := cluster(1), cluster(1)
	before.Answers[0].Metrics = &observe.Metrics{WALFsync: slow, Started: 1}
	after.Answers[0].Metrics = &observe.Metrics{WALFsync: more, Started: 1}
	if p99 := *Of(after, nil).Members[0].FsyncP99; p99 < slowFsync {
		t.Errorf("since the start, p99 is %v", p99)
	}
	if p99 := *Of(after, before).Members[0].FsyncP99; p99 >= slowFsync {
		t.Errorf("since the last look, p99 is %v", p99)
	}
	after.Answers[0].Metrics.Started = 2 // it has restarted: nothing to compare with
	if p99 := *Of(after, before).Members[0].FsyncP99; p99 < slowFsync {
		t.Errorf("after a restart, p99 is %v", p99)
	}
}

func TestUnits(t *testing.T) {
	for want, got := range map[string]string{
		"512": Bytes(512), "20.0Ki": Bytes(20 << 10), "1.2Gi": Bytes(1200 << 20),
		"2.1 ms": Seconds(0.0021), "1.5 s": Seconds(1.5),
		"90 s": Age(90 * time.Second), "6 h": Age(6 * time.Hour), "61 d": Age(61 * 24 * time.Hour), "0 s": Age(-time.Second),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestContradictionsAreThoseOfTheReference(t *testing.T) {
	reference, err := os.ReadFile("../../../doc/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	c := cluster(3)
	found := 0
	for _, row := range strings.Split(string(reference), "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 5 || strings.TrimSpace(cells[2]) != "False" || !strings.Contains(cells[4], "The operator changes nothing") {
			continue
		}
		found++
		reason := strings.Trim(strings.TrimSpace(cells[3]), "`")
		c.Object.Status.Conditions = []api.ClusterCondition{{Type: api.ClusterConditionAvailable, Status: corev1.ConditionFalse, Reason: reason}}
		s := Of(c, nil)
		if !Contradicted(c) || s.State != Degraded || !strings.HasPrefix(s.Advice[0], "data may be lost") {
			t.Errorf("%s: %s, %q", reason, s.State, s.Advice)
		}
	}
	if found != 3 {
		t.Errorf("the reference has %d reasons for which the operator changes nothing, want 3", found)
	}
}

func TestTheDiskOfAMemberThatHasJustStartedIsNotCalledSlow(t *testing.T) {
	for writes, slow := range map[float64]bool{99: false, 100: true} {
		c := cluster(3)
		c.Answers[1].Metrics = &observe.Metrics{WALFsync: observe.Histogram{{Limit: 0.02, Count: 0}, {Limit: 0.04, Count: writes}}}
		s := Of(c, nil)
		said := strings.Contains(strings.Join(s.Advice, "\n"), "slow disk")
		if said != slow || s.Members[1].FsyncP99 == nil {
			t.Errorf("after %g writes the advice is %q", writes, s.Advice)
		}
	}
}

// staleCluster is one whose members could not be asked, and that was well when the operator last looked.
func staleCluster() *observe.Cluster {
	c := cluster(3)
	c.NotAsked, c.Answers, c.Members, c.Agreed = errors.New("no connection"), nil, nil, false
	for i := range c.Pods {
		c.Pods[i].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		c.Object.Status.MemberStatuses = append(c.Object.Status.MemberStatuses, api.MemberStatus{
			Name: c.Pods[i].Name, ID: etcd.FormatID(uint64(i + 1)), Healthy: true, Version: "3.7.3", Leader: i == 0, // small
		})
	}
	return c
}

// The operator may be gone with the nodes, and its last word says that all is well.
func TestTheOperatorsLastWordYieldsToThePods(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*observe.Cluster)
		want string
	}{
		"not ready": {func(c *observe.Cluster) {
			for i := range c.Pods {
				c.Pods[i].Status.Conditions[0].Status = corev1.ConditionFalse
			}
		}, "orders-0: its pod is not ready"},
		"deleted": {func(c *observe.Cluster) {
			for i := range c.Pods {
				c.Pods[i].DeletionTimestamp = &metav1.Time{Time: now}
			}
		}, "orders-0: its pod is being deleted"},
		"gone": {func(c *observe.Cluster) { c.Pods = nil }, "orders-0: it has no pod"},
	} {
		stale := staleCluster()
		if s := Of(stale, nil); s.State != Serving || s.Leader != "orders-0" {
			t.Fatalf("%s: before, it is %s: %q", name, s.State, s.Reasons)
		}
		c.lose(stale)
		if s := Of(stale, nil); s.State != Down || s.Leader != "" || s.Members[0].Role != Silent || !strings.Contains(strings.Join(s.Reasons, "; "), c.want) {
			t.Errorf("%s: %s, leader %q, %q", name, s.State, s.Leader, s.Reasons)
		}
	}
}

// Former members have no pods of the cluster, and the operator sees whether they are well.
func TestFormerMembersNeedNoPod(t *testing.T) {
	c := staleCluster()
	c.Object.Status.MemberStatuses = append(c.Object.Status.MemberStatuses, api.MemberStatus{Name: "old-0", ID: "65", Healthy: true, Version: "3.7.3"})
	c.Object.Status.Import = &api.ImportStatus{Members: []api.ImportedMember{{ID: "65"}}}
	if s := Of(c, nil); s.Healthy != 4 {
		t.Errorf("%d voters are healthy: %q", s.Healthy, s.Reasons)
	}
}

// importing is a cluster of three members that have joined three former ones, the first of which leads.
// The plugin does not reach those: they may run anywhere.
func importing() *observe.Cluster {
	c := cluster(3)
	c.Object.Status.Import = &api.ImportStatus{}
	for i := range uint64(3) {
		id := etcd.FormatID(100 + i)
		c.Members = append(c.Members, etcd.Member{ID: 100 + i, Name: fmt.Sprintf("old-%d", i)})
		c.Object.Status.Import.Members = append(c.Object.Status.Import.Members, api.ImportedMember{ID: id})
		c.Object.Status.MemberStatuses = append(c.Object.Status.MemberStatuses, api.MemberStatus{
			Name: fmt.Sprintf("old-%d", i), ID: id, Healthy: true, Leader: i == 0, Version: "3.6.16",
		})
	}
	for i := range c.Answers {
		c.Answers[i].Status.LeaderID = 100
	}
	return c
}

func TestAClusterInTheMiddleOfAnImportIsNotDown(t *testing.T) {
	s := Of(importing(), nil)
	if s.State != Degraded || s.Voters != 6 || s.Healthy != 6 || s.Tolerates != 2 || s.Members[0].Name != "old-0" || s.Members[0].Role != Leader {
		t.Errorf("%s, %d of %d voters healthy, tolerates %d: %q, %+v", s.State, s.Healthy, s.Voters, s.Tolerates, s.Reasons, s.Members[3])
	}
	// The operator may have seen them long ago.
	c := importing()
	c.Agreed = false
	for i := range c.Answers {
		c.Answers[i].Commits = errors.New("no leader")
	}
	if s := Of(c, nil); s.State != Down || s.Healthy != 0 {
		t.Errorf("without a quorum: %s, %d healthy: %q", s.State, s.Healthy, s.Reasons)
	}
}

// The API server may reach one node alone, while etcd reaches all.
func TestAQuorumThatConfirmsReadsIsNotDown(t *testing.T) {
	c := cluster(3)
	for i := range c.Answers[1:] {
		lost := fmt.Errorf("the kubelet of the node does not answer: %w", tunnel.ErrNoConnection)
		c.Answers[i+1].Err, c.Answers[i+1].Commits = lost, lost
	}
	s := Of(c, nil)
	if s.State != Degraded || s.Tolerates != 0 || s.Healthy != 1 {
		t.Errorf("%s, %d healthy, tolerates %d: %q", s.State, s.Healthy, s.Tolerates, s.Reasons)
	}
	if reasons := strings.Join(s.Reasons, "; "); !strings.Contains(reasons, "the plugin reaches 1 of 3 voters, but a quorum confirms reads") {
		t.Errorf("it says %q", reasons)
	}
	if text := s.headline(); strings.Contains(text, "no quorum") {
		t.Errorf("the headline is %q", text)
	}
	// A member that answers, and confirms no reads, is ill.
	for i := range c.Answers[1:] {
		c.Answers[i+1].Err = nil
	}
	if s := Of(c, nil); s.State != Down {
		t.Errorf("two of three confirm no reads, and the cluster is %s", s.State)
	}
}
