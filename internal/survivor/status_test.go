// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestAStatusComesFromTheFiles(t *testing.T) {
	d := newData(t)
	server, _ := newServer(d.dir, closedPort)
	server.Version = "3.6.15"
	got, err := connect(t, start(t, server), etcd.Credentials{}).Status(soon(t))
	must(t, err)
	size := int64(len(d.snapshot(t)))
	if got.MemberID != memberID || got.ClusterID != clusterID || got.LeaderID != 0 || got.Version != "3.6.15" || got.Learner || got.DBSize != size ||
		got.RaftTerm != 7 || got.RaftIndex != 90 || got.RaftApplied != 90 || got.Revision != 10 || len(got.Alarms) != 0 {
		t.Errorf("got %+v, size %d", got, size)
	}
}

// appliedAt returns what a status says while the metrics have been the same for long enough.
func appliedAt(t *testing.T, m *metricsServer) uint64 {
	t.Helper()
	server, _ := newServer(newData(t).dir, m.address)
	svc := &service{Server: server, metrics: &watch{address: m.address}, tokens: newTokens()}
	if _, err := svc.metrics.ask(soon(t)); err != nil {
		t.Fatal(err)
	}
	svc.metrics.since = svc.metrics.since.Add(-settleTime)
	got, err := maintenance{service: svc}.Status(soon(t), nil)
	must(t, err)
	if got.Version != "3.6.16" || got.RaftIndex != got.RaftAppliedIndex {
		t.Errorf("%v", got)
	}
	return got.RaftAppliedIndex
}

func TestTheAppliedIndexOfTheMetricsCountsOnceTheDatabaseHoldsIt(t *testing.T) {
	m := newMetrics(t)
	if got := appliedAt(t, m); got != 95 {
		t.Errorf("it is %d, want that of the metrics", got)
	}
	m.set(func(m *metricsServer) { m.revision = 11 })
	if got := appliedAt(t, m); got != 90 {
		t.Errorf("with another revision it is %d, want that of the database", got)
	}
	m.set(func(m *metricsServer) { m.revision, m.applied = 10, 0 })
	if got := appliedAt(t, m); got != 90 {
		t.Errorf("where nothing was applied it is %d, want that of the database", got)
	}
}

func TestMetricsThatChangeOrEndAreNotSettled(t *testing.T) {
	m := newMetrics(t)
	for name, change := range map[string]func(w *watch){
		"another entry":    func(*watch) { m.set(func(m *metricsServer) { m.applied++ }) },
		"another revision": func(*watch) { m.set(func(m *metricsServer) { m.revision++ }) },
		"no answer": func(w *watch) {
			w.address = closedPort
			if _, err := w.ask(soon(t)); err == nil {
				t.Error("nobody listens there")
			}
			w.address = m.address
		},
	} {
		w := &watch{address: m.address}
		ask := func() {
			t.Helper()
			if _, err := w.ask(soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		if w.settled(w.last.Revision) != 0 || w.ready() {
			t.Errorf("%s: it is settled at once", name)
		}
		w.since = w.since.Add(-settleTime)
		ask()
		if w.settled(w.last.Revision) == 0 {
			t.Errorf("%s: before, it is not settled", name)
		}
		change(w)
		ask()
		if w.settled(w.last.Revision) != 0 {
			t.Errorf("%s: it stays settled", name)
		}
	}
}

func TestAStatusWaitsUntilTheDatabaseHoldsAll(t *testing.T) {
	t.Parallel()
	m := newMetrics(t)
	server, _ := newServer(newData(t).dir, m.address)
	begun := time.Now()
	conn := connect(t, start(t, server), etcd.Credentials{})
	ctx := soon(t)
	for settled := false; !settled; {
		asked := time.Now()
		got, err := conn.Status(ctx)
		must(t, err)
		settled = got.RaftApplied == 95
		// On a busy machine, the looks at the metrics may take longer than a request waits.
		if took := time.Since(asked); !settled && (took < mostWait || got.RaftApplied != 90) {
			t.Fatalf("after %v, the applied index is %d, want that of the metrics", took, got.RaftApplied)
		}
	}
	if took := time.Since(begun); took < settleTime {
		t.Errorf("the metrics were the same for %v only", took)
	}
}

func TestMetricsThatNeverSettleDoNotHinder(t *testing.T) {
	t.Parallel()
	m := newMetrics(t)
	w := &watch{address: m.address}
	if _, err := w.ask(soon(t)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	w.await(t.Context()) // nobody looks again
	if took := time.Since(begun); took < mostWait || took > 5*mostWait {
		t.Errorf("a request waits %v", took)
	}
}

func TestAMemberWithALeaderServesItself(t *testing.T) {
	t.Parallel()
	m := newMetrics(t)
	m.set(func(m *metricsServer) { m.leader = true })
	d := newData(t)
	server, _ := newServer(d.dir, m.address)
	conn := connect(t, start(t, server), etcd.Credentials{})
	check := func(what string, err error) {
		t.Helper()
		if status.Code(errors.Unwrap(err)) != codes.Unavailable || !strings.Contains(err.Error(), etcd.ErrHasLeader.Error()) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := conn.Status(soon(t))
	check("status", err)
	_, err = conn.Snapshot(soon(t))
	check("snapshot", err)
	d.enableAuth(t)
	_, err = connect(t, start(t, server), etcd.Credentials{Username: "root", Password: "secret"}).Snapshot(soon(t))
	check("login", err)

	m.set(func(m *metricsServer) { m.leader = false })
	if _, err := connect(t, start(t, server), etcd.Credentials{Username: "root", Password: "secret"}).Status(soon(t)); err != nil {
		t.Errorf("without a leader: %v", err)
	}
}

func TestMetricsOfAnotherMemberAreAnError(t *testing.T) {
	m := newMetrics(t)
	m.set(func(m *metricsServer) { m.member = 5 })
	server, _ := newServer(newData(t).dir, m.address)
	_, err := connect(t, start(t, server), etcd.Credentials{}).Status(soon(t))
	if status.Code(errors.Unwrap(err)) != codes.Unavailable {
		t.Error(err)
	}
}

func TestAnAlarmForTheDataIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		member uint64
		kind   etcdserverpb.AlarmType
		told   bool
	}{
		"corrupt":         {memberID, etcdserverpb.AlarmType_CORRUPT, true},
		"corrupt, nobody": {0, etcdserverpb.AlarmType_CORRUPT, true},
		"another member":  {5, etcdserverpb.AlarmType_CORRUPT, false},
		"no space":        {memberID, etcdserverpb.AlarmType_NOSPACE, false},
	} {
		d := newData(t)
		key, err := proto.Marshal(&etcdserverpb.AlarmMember{MemberID: test.member, Alarm: test.kind})
		must(t, err)
		d.put(t, "alarm", map[string]string{string(key): ""})
		server, _ := newServer(d.dir, closedPort)
		got, err := connect(t, start(t, server), etcd.Credentials{}).Status(soon(t))
		must(t, err)
		if want := (etcd.Alarm{MemberID: memberID, Type: etcd.AlarmCorrupt}); slices.Contains(got.Alarms, want) != test.told {
			t.Errorf("%s: the alarms are %v", name, got.Alarms)
		}
	}
}
