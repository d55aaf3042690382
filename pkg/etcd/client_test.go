// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// dial connects to a member by a name that no DNS knows, as a pod's name is not
// known for a while after its start.
func dial(t *testing.T, m *etcdtest.Member) *etcd.Conn {
	t.Helper()
	client := etcd.NewClient(nil)
	t.Cleanup(client.Close)
	conn, err := client.Conn(etcd.Endpoint{URL: "http://a.c.ns.svc.invalid:" + m.Port, IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestStatusIsWhatTheMemberSays(t *testing.T) {
	m := (&etcdtest.Member{Status: &etcdserverpb.StatusResponse{
		Header:  &etcdserverpb.ResponseHeader{MemberId: 7, ClusterId: 8, Revision: 33},
		Version: "3.6.16", Leader: 9, RaftIndex: 20, RaftAppliedIndex: 19, DbSize: 4096, DbSizeInUse: 1024,
		IsLearner: true, Errors: []string{"memberID:7 alarm:NOSPACE "},
	}}).Start(t)
	got, err := dial(t, m).Status(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	want := etcd.Status{
		MemberID: 7, ClusterID: 8, LeaderID: 9, Version: "3.6.16", Learner: true,
		DBSize: 4096, DBInUse: 1024, RaftIndex: 20, RaftApplied: 19, Revision: 33, Alarms: []etcd.Alarm{{MemberID: 7, Type: etcd.AlarmNoSpace}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("status %+v, want %+v", got, want)
	}
}

func TestStatusOfAMemberThatDoesNotAnswerNamesIt(t *testing.T) {
	m := (&etcdtest.Member{Hang: true}).Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := dial(t, m).Status(ctx)
	if err == nil || !strings.Contains(err.Error(), "a.c.ns.svc.invalid") {
		t.Errorf("error %v does not name the member", err)
	}
}

func TestMembersAreAgreedOnAndLocalMembersRemembered(t *testing.T) {
	m := (&etcdtest.Member{
		Agreed: []*etcdserverpb.Member{
			{ID: 3, PeerURLs: []string{"http://c:2380"}, IsLearner: true},
			{ID: 1, Name: "a", PeerURLs: []string{"http://a:2380"}},
		},
		Remembered: []*etcdserverpb.Member{{ID: 1, Name: "a", PeerURLs: []string{"http://a:2380"}}},
	}).Start(t)
	conn := dial(t, m)

	agreed, err := conn.Members(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []etcd.Member{
		{ID: 1, Name: "a", PeerURLs: []string{"http://a:2380"}},
		{ID: 3, PeerURLs: []string{"http://c:2380"}, Learner: true},
	}; !reflect.DeepEqual(agreed, want) {
		t.Errorf("members %v, want %v sorted by ID", agreed, want)
	}
	remembered, err := conn.LocalMembers(soon(t))
	if err != nil || len(remembered) != 1 {
		t.Errorf("local members %v, %v, want the one that is remembered", remembered, err)
	}
}

func TestWithoutAQuorumOnlyLocalMembersAnswer(t *testing.T) {
	m := (&etcdtest.Member{
		NoQuorum:   rpctypes.ErrGRPCTimeout,
		Remembered: []*etcdserverpb.Member{{ID: 1, Name: "a"}},
	}).Start(t)
	conn := dial(t, m)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if list, err := conn.Members(ctx); err == nil {
		t.Errorf("members %v were listed without a quorum", list)
	}
	if list, err := conn.LocalMembers(soon(t)); err != nil || len(list) != 1 {
		t.Errorf("local members %v, %v", list, err)
	}
}

func TestChangesReachTheMember(t *testing.T) {
	m := new(etcdtest.Member).Start(t)
	conn, ctx := dial(t, m), soon(t)

	added, err := conn.AddMember(ctx, "http://d:2380", true)
	if err != nil || added.ID != 99 || !added.Learner {
		t.Errorf("added %v, %v", added, err)
	}
	if added, err = conn.AddMember(ctx, "http://e:2380", false); err != nil || added.Learner {
		t.Errorf("added %v, %v", added, err)
	}
	for _, err := range []error{conn.PromoteMember(ctx, 5), conn.RemoveMember(ctx, 6), conn.MoveLeader(ctx, 7)} {
		if err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, change := range m.Changes() {
		switch c := change.(type) {
		case *etcdserverpb.MemberAddRequest:
			got = append(got, fmt.Sprint("add ", c.PeerURLs, c.IsLearner))
		case *etcdserverpb.MemberPromoteRequest:
			got = append(got, fmt.Sprint("promote ", c.ID))
		case *etcdserverpb.MemberRemoveRequest:
			got = append(got, fmt.Sprint("remove ", c.ID))
		case *etcdserverpb.MoveLeaderRequest:
			got = append(got, fmt.Sprint("move ", c.TargetID))
		}
	}
	want := []string{"add [http://d:2380] true", "add [http://e:2380] false", "promote 5", "remove 6", "move 7"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
}

func TestAdvanceLogLiftsNoAlarm(t *testing.T) {
	m := new(etcdtest.Member).Start(t)
	if err := dial(t, m).AdvanceLog(soon(t), 300); err != nil {
		t.Fatal(err)
	}
	changes := m.Changes()
	if len(changes) != 300 {
		t.Errorf("%d entries were appended, want 300", len(changes))
	}
	for _, change := range changes {
		r, ok := change.(*etcdserverpb.AlarmRequest)
		if !ok || r.Action != etcdserverpb.AlarmRequest_DEACTIVATE || r.Alarm != etcdserverpb.AlarmType_NONE || r.MemberID != 0 {
			t.Fatalf("the request %v has an effect, or none on the log", change)
		}
	}
	refuses := (&etcdtest.Member{Refusal: rpctypes.ErrGRPCNoLeader}).Start(t)
	if err := dial(t, refuses).AdvanceLog(soon(t), 300); err == nil {
		t.Error("entries that were refused count as appended")
	}
}

func TestOnlyTheAlarmThatIsNamedIsLifted(t *testing.T) {
	m := new(etcdtest.Member).Start(t)
	conn := dial(t, m)
	for _, a := range []etcd.Alarm{{MemberID: 7, Type: etcd.AlarmNoSpace}, {MemberID: 8, Type: etcd.AlarmCorrupt}} {
		if err := conn.Disarm(soon(t), a); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, change := range m.Changes() {
		if r, ok := change.(*etcdserverpb.AlarmRequest); ok {
			got = append(got, fmt.Sprint(r.Action, r.MemberID, r.Alarm))
		}
	}
	if want := []string{"DEACTIVATE 7 NOSPACE", "DEACTIVATE 8 CORRUPT"}; !reflect.DeepEqual(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	// etcd takes a request without a type for one that lifts all alarms, or none.
	for _, a := range []etcd.Alarm{{MemberID: 7, Type: "NONE"}, {MemberID: 7, Type: "7"}, {MemberID: 7}} {
		if err := conn.Disarm(soon(t), a); err == nil {
			t.Errorf("the alarm %+v is lifted", a)
		}
	}
	if n := len(m.Changes()); n != 2 {
		t.Errorf("%d requests", n)
	}
	refuses := (&etcdtest.Member{Refusal: rpctypes.ErrGRPCNoLeader}).Start(t)
	if err := dial(t, refuses).Disarm(soon(t), etcd.Alarm{MemberID: 7, Type: etcd.AlarmNoSpace}); !etcd.IsNotYet(err) {
		t.Errorf("without a leader: %v", err)
	}
}

func TestChangesThatAreDoneAlreadyAreNoErrors(t *testing.T) {
	promoted := (&etcdtest.Member{Refusal: rpctypes.ErrGRPCMemberNotLearner}).Start(t)
	if err := dial(t, promoted).PromoteMember(soon(t), 5); err != nil {
		t.Errorf("promoting a voter: %v", err)
	}
	removed := (&etcdtest.Member{Refusal: rpctypes.ErrGRPCMemberNotFound}).Start(t)
	if err := dial(t, removed).RemoveMember(soon(t), 5); err != nil {
		t.Errorf("removing a member that is none: %v", err)
	}
}

func TestIsNotYet(t *testing.T) {
	for refusal, want := range map[error]bool{
		rpctypes.ErrGRPCLearnerNotReady:        true,
		rpctypes.ErrGRPCMemberNotEnoughStarted: true,
		rpctypes.ErrGRPCTooManyLearners:        true,
		rpctypes.ErrGRPCUnhealthy:              true,
		rpctypes.ErrGRPCNoLeader:               true,
		rpctypes.ErrGRPCNotLeader:              true,
		rpctypes.ErrGRPCLeaderChanged:          true,
		rpctypes.ErrGRPCTimeout:                true,
		rpctypes.ErrGRPCNotCapable:             true,
		rpctypes.ErrGRPCPeerURLExist:           false,
		rpctypes.ErrGRPCMemberExist:            false,
		rpctypes.ErrGRPCMemberBadURLs:          false,
		rpctypes.ErrGRPCNoSpace:                false,
		rpctypes.ErrGRPCCorrupt:                false,
		rpctypes.ErrGRPCPermissionDenied:       false,
	} {
		m := (&etcdtest.Member{Refusal: refusal}).Start(t)
		conn := dial(t, m)
		_, err := conn.AddMember(soon(t), "http://d:2380", true)
		if err == nil {
			t.Errorf("%v was not an error", refusal)
			continue
		}
		if got := etcd.IsNotYet(err); got != want {
			t.Errorf("IsNotYet(%v) is %t, want %t", err, got, want)
		}
		if err := conn.PromoteMember(soon(t), 5); etcd.IsNotYet(err) != want {
			t.Errorf("IsNotYet(%v) of a promotion is %t, want %t", err, !want, want)
		}
	}
	if etcd.IsNotYet(nil) || etcd.IsNotYet(context.DeadlineExceeded) {
		t.Error("no error, or a deadline, is taken for a refusal that time heals")
	}
}

func TestConnectionsAreKeptUntilTheirMemberIsGone(t *testing.T) {
	m := new(etcdtest.Member).Start(t)
	client := etcd.NewClient(nil)
	defer client.Close()
	ep := etcd.Endpoint{URL: "http://a.c.ns.svc.invalid:" + m.Port, IP: m.IP}
	first, err := client.Conn(ep)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := client.Conn(ep); again != first {
		t.Error("the second connection to an endpoint is another one")
	}
	client.Retain(map[etcd.Endpoint]bool{ep: true})
	if _, err := first.Status(soon(t)); err != nil {
		t.Errorf("a retained connection: %v", err)
	}
	client.Retain(map[etcd.Endpoint]bool{})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // it is tried again and again
	defer cancel()
	if _, err := first.Members(ctx); err == nil {
		t.Error("a connection that was not retained still works")
	}
	if next, _ := client.Conn(ep); next == first {
		t.Error("a closed connection is handed out again")
	}
}

// Two writes to one map at a time end a process, and no recover prevents it.
func TestConnectionsMayBeAskedForAtTheSameTime(t *testing.T) {
	const goroutines, endpoints = 16, 4
	for range 20 {
		client := etcd.NewClient(nil)
		var conns [goroutines]*etcd.Conn
		start := make(chan struct{})
		var asking sync.WaitGroup
		for i := range conns {
			asking.Go(func() {
				<-start
				var err error
				if conns[i], err = client.Conn(etcd.Endpoint{URL: fmt.Sprintf("http://127.0.0.1:%d", 1+i%endpoints)}); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		asking.Wait()
		for i, conn := range conns {
			if conn != conns[i%endpoints] {
				t.Fatal("an endpoint has two connections")
			}
		}
		client.Close()
	}
}

func TestConnectionsFollowAPodToItsNewAddress(t *testing.T) {
	m := (&etcdtest.Member{Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
	client := etcd.NewClient(nil)
	defer client.Close()
	url := "http://a.c.ns.svc.invalid:" + m.Port
	if _, err := client.Conn(etcd.Endpoint{URL: url, IP: "127.255.255.254"}); err != nil { // nobody is there
		t.Fatal(err)
	}
	conn, err := client.Conn(etcd.Endpoint{URL: url, IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := conn.Status(soon(t)); err != nil || st.Version != "3.6.16" {
		t.Errorf("status %+v, %v", st, err)
	}
}

func TestBadClientURLIsAnError(t *testing.T) {
	client := etcd.NewClient(nil)
	defer client.Close()
	if _, err := client.Conn(etcd.Endpoint{URL: "http://%zz", IP: "127.0.0.1"}); err == nil {
		t.Error("a URL that can't be parsed is taken")
	}
}

func TestWithoutATLSConfigurationTheClientSpeaksPlainText(t *testing.T) {
	m := (&etcdtest.Member{Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
	if _, err := dial(t, m).Status(soon(t)); err != nil {
		t.Errorf("plain text: %v", err)
	}
	client := etcd.NewClient(&tls.Config{MinVersion: tls.VersionTLS12})
	defer client.Close()
	conn, err := client.Conn(etcd.Endpoint{URL: "https://a.c.ns.svc.invalid:" + m.Port, IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := conn.Status(ctx); err == nil {
		t.Error("a client with a TLS configuration speaks plain text")
	}
}

// The handshake of TLS through a tunnel needs several round trips by way of the API server.
func TestAConnectionThroughATunnelMayTakeLong(t *testing.T) {
	t.Parallel()
	m := (&etcdtest.Member{Status: &etcdserverpb.StatusResponse{Version: "3.6.16"}}).Start(t)
	client := etcd.NewClientThrough(nil, func(ctx context.Context, address string) (net.Conn, error) {
		select {
		case <-time.After(2500 * time.Millisecond):
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	defer client.Close()
	conn, err := client.Conn(etcd.Endpoint{URL: "http://a:" + m.Port, IP: m.IP})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Status(t.Context()); err != nil {
		t.Error(err)
	}
}
