// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/certsecret"
	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// listed is a membership, by the pods' names; IDs count from 1.
func listed(pods ...string) []*etcdserverpb.Member {
	var list []*etcdserverpb.Member
	for i, p := range pods {
		list = append(list, &etcdserverpb.Member{ID: uint64(i + 1), Name: p, PeerURLs: []string{manifest.Names{Namespace: "ns", Cluster: "c"}.PeerURL(p)}})
	}
	return list
}

// answered is what a pod's member said of itself.
func answered(t *testing.T, c *Cluster, pod string, status etcd.Status, m *etcdtest.Member) answer {
	t.Helper()
	m.Start(t)
	conn, err := c.etcd.Conn(etcd.Endpoint{URL: fmt.Sprintf("http://%s.invalid:%s", pod, m.Port), IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.etcd.Close)
	return answer{pod: manifest.PodState{Name: pod}, conn: conn, status: &status}
}

func listNames(members []etcd.Member) string {
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return fmt.Sprint(names)
}

func TestTheMembershipIsWhatAQuorumAgreesOn(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	follower := answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 2, RaftIndex: 90}, &etcdtest.Member{Agreed: listed("a", "b", "old")})
	leader := answered(t, c, "b", etcd.Status{MemberID: 2, LeaderID: 2, RaftIndex: 80}, &etcdtest.Member{Agreed: listed("a", "b", "c")})
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	if got := listNames(c.list(t.Context(), o, []answer{follower, leader})); got != "[a b c]" || !o.Quorum || c.change != leader.conn {
		t.Errorf("members %s, quorum %t, changes go to the leader: %t", got, o.Quorum, c.change == leader.conn)
	}
}

func TestAMemberThatLostTheOthersIsNotBelieved(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	cutOff := answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 1}, &etcdtest.Member{NoQuorum: rpctypes.ErrGRPCNoLeader, Remembered: listed("a", "b", "old")})
	follower := answered(t, c, "b", etcd.Status{MemberID: 2, LeaderID: 3}, &etcdtest.Member{Agreed: listed("a", "b", "c")})
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	if got := listNames(c.list(t.Context(), o, []answer{cutOff, follower})); got != "[a b c]" || !o.Quorum || c.change != follower.conn {
		t.Errorf("members %s, quorum %t", got, o.Quorum)
	}
}

// Members without a connection to the others may claim to know a leader, and then not answer.
// The observation must not wait for one after the other: all have listTimeout together, and it
// would not ask the last one.
func TestMembersThatDoNotAnswerAreWaitedForTogether(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	answers := []answer{
		answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 1, RaftIndex: 9}, &etcdtest.Member{NoQuorum: rpctypes.ErrGRPCLeaderChanged}),
		answered(t, c, "b", etcd.Status{MemberID: 2, LeaderID: 1, RaftIndex: 8}, &etcdtest.Member{Hang: true}),
		answered(t, c, "c", etcd.Status{MemberID: 3, LeaderID: 1, RaftIndex: 7}, &etcdtest.Member{Hang: true}),
		answered(t, c, "d", etcd.Status{MemberID: 4, LeaderID: 5, RaftIndex: 6}, &etcdtest.Member{Agreed: listed("a", "b", "c", "d", "e")}),
	}
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	if got := listNames(c.list(t.Context(), o, answers)); got != "[a b c d e]" || !o.Quorum || c.change != answers[3].conn {
		t.Errorf("members %s, quorum %t", got, o.Quorum)
	}
}

func TestWithoutAQuorumTheMostAdvancedMembersMemoryCounts(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	c.change = new(etcd.Conn) // of the pass before
	behind := answered(t, c, "a", etcd.Status{MemberID: 1, RaftIndex: 5}, &etcdtest.Member{Agreed: listed("a", "lie"), Remembered: listed("a", "b")})
	ahead := answered(t, c, "b", etcd.Status{MemberID: 2, RaftIndex: 9}, &etcdtest.Member{Agreed: listed("b", "lie"), Remembered: listed("a", "b", "c")})
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	if got := listNames(c.list(t.Context(), o, []answer{behind, ahead})); got != "[a b c]" || o.Quorum || c.change != nil {
		t.Errorf("members %s, quorum %t, changes are taken: %t", got, o.Quorum, c.change != nil)
	}
}

func TestNobodyElsesMembershipIsTaken(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	for name, m := range map[string]*etcdtest.Member{
		"another cluster's, at an address that was a pod's": {Agreed: listed("x", "y"), Remembered: listed("x", "y")},
		"one that does not hold the member":                 {Agreed: nil, Remembered: nil},
	} {
		c := w.cluster(testCluster())
		o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
		a := answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 1}, m)
		if got := c.list(t.Context(), o, []answer{a}); len(got) > 0 || o.Quorum || c.change != nil {
			t.Errorf("%s: members %v, quorum %t", name, got, o.Quorum)
		}
	}
}

func TestLearnersAndSilentMembersAreNotAskedForTheMembership(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	learner := answered(t, c, "a", etcd.Status{MemberID: 1, LeaderID: 2, Learner: true}, &etcdtest.Member{Agreed: listed("a", "b")})
	o := &plan.Observation{Names: manifest.NamesOf(c.obj)}
	silent := answer{pod: manifest.PodState{Name: "b"}, err: fmt.Errorf("connection refused")}
	if got := c.list(t.Context(), o, []answer{learner, silent}); len(got) > 0 || o.Quorum {
		t.Errorf("members %v, quorum %t", got, o.Quorum)
	}
}

func TestMembersAreDownSinceTheyWereFirstSeenSo(t *testing.T) {
	h := healthLog{}
	seen := func(minute int, members ...plan.MemberState) []plan.MemberState {
		o := &plan.Observation{Now: noon.Add(time.Duration(minute) * time.Minute), Members: members, Quorum: true}
		h.track(o)
		return o.Members
	}
	up := plan.MemberState{Member: etcd.Member{ID: 1}, Status: &etcd.Status{LeaderID: 1}}
	down := plan.MemberState{Member: etcd.Member{ID: 1}}
	leaderless := plan.MemberState{Member: etcd.Member{ID: 1}, Status: &etcd.Status{}}

	if m := seen(0, up); !m[0].DownSince.IsZero() {
		t.Errorf("a healthy member is down since %v", m[0].DownSince)
	}
	seen(1, down)
	if m := seen(2, leaderless); !m[0].DownSince.Equal(noon.Add(time.Minute)) {
		t.Errorf("down since %v, want the first look that saw it", m[0].DownSince)
	}
	seen(3) // nobody answers: nothing is known of the membership
	if m := seen(4, down); !m[0].DownSince.Equal(noon.Add(time.Minute)) {
		t.Errorf("down since %v after a look that saw no member", m[0].DownSince)
	}
	seen(5, up)
	if m := seen(6, down); !m[0].DownSince.Equal(noon.Add(6 * time.Minute)) {
		t.Errorf("down since %v, though it was up between", m[0].DownSince)
	}
	seen(7, plan.MemberState{Member: etcd.Member{ID: 2}, Status: &etcd.Status{LeaderID: 2}})
	if len(h) > 0 {
		t.Errorf("members that are gone are remembered: %v", h)
	}
}

// Without a quorum nobody asks a member whether it confirms reads, so a member whose disk
// hangs looks healthy. That it was down before still counts.
func TestAStalledMemberStaysDownWhileThereIsNoQuorum(t *testing.T) {
	h := healthLog{}
	look := func(minute int, quorum, stalled bool) time.Time {
		m := plan.MemberState{Member: etcd.Member{ID: 1}, Status: &etcd.Status{LeaderID: 2}, Stalled: stalled}
		o := &plan.Observation{Now: noon.Add(time.Duration(minute) * time.Minute), Members: []plan.MemberState{m}, Quorum: quorum}
		h.track(o)
		return o.Members[0].DownSince
	}
	look(0, true, true)
	look(1, false, false)
	if since := look(2, true, true); !since.Equal(noon) {
		t.Errorf("the member is down since %v, want %v", since, noon)
	}
	look(3, true, false)
	if since := look(4, true, true); !since.Equal(noon.Add(4 * time.Minute)) {
		t.Errorf("the member is down since %v, though it confirmed a read before", since)
	}
}

// After an outage, the nodes boot one by one. A member whose node is late has its time from then on,
// however often the quorum is lost again.
func TestAMemberIsAwaitedOnlyWhileThereIsAQuorum(t *testing.T) {
	h := healthLog{}
	now := noon
	look := func(after time.Duration, quorum bool) time.Duration {
		now = now.Add(after)
		o := &plan.Observation{Now: now, Members: []plan.MemberState{{Member: etcd.Member{ID: 1}}}, Quorum: quorum}
		h.track(o)
		if !o.Members[0].DownSince.Equal(noon) {
			t.Fatalf("down since %v, want %v", o.Members[0].DownSince, noon)
		}
		return o.Members[0].Awaited
	}
	for i, l := range []struct {
		after  time.Duration
		quorum bool
		want   time.Duration // in all
	}{
		{0, true, 0},
		{10 * time.Second, true, 10 * time.Second},
		{10 * time.Second, false, 10 * time.Second},
		{50 * time.Second, false, 10 * time.Second},
		{10 * time.Second, true, 10 * time.Second}, // it has just returned
		{10 * time.Second, true, 20 * time.Second},
		{time.Hour, true, 20 * time.Second}, // the operator was frozen
		{time.Minute, true, 80 * time.Second},
	} {
		if got := look(l.after, l.quorum); got != l.want {
			t.Errorf("look %d: awaited for %s, want %s", i, got, l.want)
		}
	}
}

// A disk that hangs before an outage hangs through it. A member that was silent and confirms no read at the
// first look after the outage may only be slow.
func TestOnlyAHungDiskIsAwaitedWithoutAQuorum(t *testing.T) {
	silent := plan.MemberState{Member: etcd.Member{ID: 1}}
	hangs := plan.MemberState{Member: etcd.Member{ID: 1}, Status: &etcd.Status{LeaderID: 2}, Stalled: true}
	unasked := hangs
	unasked.Stalled = false // it looks healthy
	for _, tt := range []struct {
		before plan.MemberState
		want   time.Duration
	}{
		{silent, 10 * time.Second},
		{hangs, 80 * time.Second},
	} {
		h := healthLog{}
		var awaited time.Duration
		for i, l := range []struct {
			quorum bool
			member plan.MemberState
		}{
			{true, tt.before}, {false, unasked}, {false, unasked}, {false, silent}, {false, unasked}, {false, unasked}, {false, unasked}, {true, hangs}, {true, hangs},
		} {
			o := &plan.Observation{Now: noon.Add(time.Duration(i) * 10 * time.Second), Members: []plan.MemberState{l.member}, Quorum: l.quorum}
			h.track(o)
			awaited = o.Members[0].Awaited
		}
		if awaited != tt.want {
			t.Errorf("awaited for %s, want %s, after %+v", awaited, tt.want, tt.before)
		}
	}
}

func TestOnlyOwnPodsAndServicesAreSeen(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(noon), testCluster())
	c := w.cluster(testCluster())
	earlier := testCluster()
	earlier.UID = "earlier"
	stranger, leaving, other := memberPod(t, earlier, "stranger"), memberPod(t, earlier, "leaving"), memberPod(t, earlier, "other")
	at := metav1.NewTime(noon)
	leaving.DeletionTimestamp, leaving.Finalizers = &at, []string{"x/y"}
	other.Labels[api.ClusterLabel] = "other"
	w.makePod(memberPod(t, c.obj, "own"))
	w.makePod(stranger)
	w.makePod(leaving)
	w.makePod(other)
	w.makeService(manifest.BuildPeerService(c.obj))
	w.makeService(manifest.BuildClientService(earlier))
	w.watch()

	o, err := c.observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Pods) != 1 || o.Pods[0].Name != "own" || o.PodsOfOthers != 1 {
		t.Errorf("pods %v, strangers %d", o.Pods, o.PodsOfOthers)
	}
	if !o.PeerService.Ok() || o.ClientService.Ok() {
		t.Errorf("peer Service %+v, client Service of the earlier cluster %+v", o.PeerService, o.ClientService)
	}
}

func TestAPodThatTheCacheMissesIsAskedFor(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	w := newWorld(t, clock, testCluster())
	c := w.cluster(testCluster())
	c.podWrites.record(w.makePod(memberPod(t, c.obj, "lives")), noon)
	gone := memberPod(t, c.obj, "gone")
	c.podWrites.record(gone, noon)
	for _, step := range []struct {
		after time.Duration
		pods  int
		asked int
	}{
		{time.Second, 2, 0},
		{doubtAfter, 1, 2},
		{time.Second, 1, 2},
	} {
		clock.Step(step.after)
		o, err := c.observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Pods) != step.pods || w.count("get", "pods") != step.asked {
			t.Errorf("%v later: pods %v, asked for %d", step.after, o.Pods, w.count("get", "pods"))
		}
	}
}

// A pod's address may belong to another pod by now.
func TestAnotherMemberAtItsAddressIsNotTheMember(t *testing.T) {
	obj := testCluster()
	obj.Status = runningStatus()
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	members["b"].says[0].MemberID = 9
	o, err := w.cluster(obj).observe(t.Context())
	if err != nil || len(o.Members) != 3 {
		t.Fatalf("members %+v, %v", o.Members, err)
	}
	for _, m := range o.Members {
		if other := m.PodName == "b"; m.Healthy() == other || errors.Is(m.Err, plan.ErrOtherMember) != other {
			t.Errorf("%s is healthy: %t, error %v", m.PodName, m.Healthy(), m.Err)
		}
	}
}

// Somebody has added a member with the name or the host of another one. It had the pod of that one in the
// observation, so the operator deleted the pod, and without a volume the data, when it removed the silent member.
func TestAPodBelongsToOneMemberAlone(t *testing.T) {
	names := manifest.Names{Namespace: "ns", Cluster: "c"}
	for what, added := range map[string]etcd.Member{
		"the same name": {ID: 9, Name: "a", PeerURLs: []string{"http://192.0.2.1:2380"}, Learner: true},
		"the same host": {ID: 9, PeerURLs: []string{"http://" + names.Host("a") + ":2390"}, Learner: true},
	} {
		for _, first := range []bool{true, false} {
			for _, silent := range []bool{true, false} {
				obj := testCluster()
				obj.Status = runningStatus()
				w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
				members := fakeMembers{}
				members.join(t, w, "b", "a", "c")
				if silent {
					members["a"].refusal = errors.New("no answer")
				}
				for _, m := range members {
					if m.agreed = append(slices.Clone(m.agreed), added); first {
						m.agreed = append([]etcd.Member{added}, m.agreed[:3]...)
					}
				}
				o, err := w.cluster(obj).observe(t.Context())
				if err != nil || len(o.Members) != 4 {
					t.Fatalf("members %+v, %v", o.Members, err)
				}
				for _, m := range o.Members {
					if m.Foreign() != m.Learner {
						t.Errorf("%s, listed first: %t, silent: %t: member %+v has pod %q", what, first, silent, m.Member, m.PodName)
					}
				}
			}
		}
	}
}

// A launcher starts etcd as soon as its member is on record. The kubelet reports that later,
// and etcd's own answer counts. A pod that is no member yet has no etcd to ask.
func TestAMemberThatAnswersHasStarted(t *testing.T) {
	obj := testCluster()
	obj.Status = runningStatus()
	obj.Status.Record = &api.ClusterRecord{Members: []api.RecordedMember{{Name: "a"}, {Name: "b"}}}
	w := newWorld(t, clocktesting.NewFakeClock(noon), obj)
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	for _, pod := range w.storedPods() {
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Started = new(pod.Name == "a")
		}
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), &pod, pod.Namespace); err != nil {
			t.Fatal(err)
		}
	}
	w.watch()
	o, err := w.cluster(obj).observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, answers := range map[string]bool{"a": true, "b": true, "c": false} {
		if p := o.Pod(name); p.Started != answers || p.Running != answers || p.Waiting == answers {
			t.Errorf("%s answers: %t; started %t, running %t, waiting %t", name, answers, p.Started, p.Running, p.Waiting)
		}
	}
}

// Somebody takes back an edit on which a member could not start, half an hour later. The member was removed
// before its repaired pod could start.
func TestAMemberIsAwaitedAgainAfterAnEdit(t *testing.T) {
	h := healthLog{}
	now := noon
	look := func(template, image string) time.Duration {
		now = now.Add(10 * time.Second)
		m := plan.MemberState{Member: etcd.Member{ID: 1}}
		if template != "" {
			m.Pod = &manifest.PodState{Template: manifest.Template{Pod: template}, Admitted: image}
		}
		o := &plan.Observation{Now: now, Members: []plan.MemberState{m}, Quorum: true}
		h.track(o)
		return o.Members[0].Awaited
	}
	for i, l := range []struct {
		template, image string
		want            time.Duration
	}{
		{"bad", "x", 0},
		{"bad", "x", 10 * time.Second},
		{"", "", 20 * time.Second}, // somebody deletes the pod
		{"bad", "x", 30 * time.Second},
		{"", "", 40 * time.Second}, // the operator deletes it to repair it
		{"good", "x", 0},
		{"good", "x", 10 * time.Second},
		{"good", "y", 0}, // its image changes in place
		{"good", "y", 10 * time.Second},
	} {
		if got := look(l.template, l.image); got != l.want {
			t.Errorf("look %d: awaited for %s, want %s", i, got, l.want)
		}
	}
}

// A CA was exchanged in one step, and a member that restarted can't return. Hours later, somebody puts the former
// files back. The next pass removed the member with its volume, before anybody could delete its pod.
func TestAMemberIsNotAwaitedWhileMembersRefuseEachOther(t *testing.T) {
	ca, other := etcdtest.NewCA(t, "ca"), etcdtest.NewCA(t, "ca")
	peers := func(by *etcdtest.CA) *corev1.Secret {
		return certificateSecret(peerUse, certsecret.Static, "peers", by, etcdtest.Leaf{DNS: memberNames}, by)
	}
	obj := testCluster()
	obj.Spec.Size, obj.Status = 3, runningStatus()
	obj.Spec.TLS = &api.TLSPolicy{Static: &api.StaticTLS{Member: &api.MemberSecret{PeerSecret: "peers"}}}
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake, obj)
	w.put(peers(ca))
	members := fakeMembers{}
	members.join(t, w, "a", "b", "c")
	c := w.cluster(obj)
	look := func(held bool) time.Duration {
		t.Helper()
		o, err := c.observe(t.Context())
		if err != nil || len(o.Members) != 3 {
			t.Fatalf("members %v, %v", o, err)
		}
		if o.PeersRefuse() != held {
			t.Fatalf("they refuse each other: %q", o.Certificates.MembersHeld)
		}
		fake.Step(certPeriod)
		return o.Members[2].Awaited
	}
	look(false)
	for _, name := range []string{"a", "b", "c"} {
		w.editPod(name, func(pod *corev1.Pod) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, manifest.PeerCAsAnnotation, strings.Join(c.certs.held["peer"].ID.CAs(), ","))
		})
	}
	members["c"].refusal = errors.New("no answer")
	look(false)
	if got := look(false); got != certPeriod {
		t.Errorf("it was awaited for %s", got)
	}
	w.put(peers(other))
	for range 30 {
		if got := look(true); got != certPeriod {
			t.Fatalf("while they refuse each other, it was awaited for %s", got)
		}
	}
	w.put(peers(ca))
	if got := look(false); got != certPeriod {
		t.Errorf("after that, it was awaited for %s", got)
	}
	if got := look(false); got != 2*certPeriod {
		t.Errorf("later, it was awaited for %s", got)
	}
}
