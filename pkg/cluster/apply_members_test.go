//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/etcd-operator/etcd-operator/pkg/cluster/plan"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
	"github.com/etcd-operator/etcd-operator/test/members"
)

const (
	smallQuota = "--quota-backend-bytes=8388608"
	megabyte   = 1 << 20
)

// A cluster that is restored from a backup of a full one accepts writes again if it has room.
// If it has none, etcd raises the alarm again, for the current member.
func TestAlarmsThatCameWithABackupAreLifted(t *testing.T) {
	for _, release := range members.Releases(t) {
		t.Run(release.Minor(), func(t *testing.T) {
			backup := backupOfAFullCluster(t, release)

			roomy := startedFrom(t, release, backup, withRoom)
			s := roomy.step(t)
			if s == nil || !strings.Contains(s.String(), "NOSPACE of ") {
				t.Fatalf("the plan is %v", s)
			}
			if err := roomy.put(t, 1); !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Errorf("before: %v", err)
			}
			roomy.apply(t, s)
			if err := roomy.put(t, megabyte); err != nil {
				t.Errorf("after: %v", err)
			}
			if o := roomy.observe(t); len(o.Alarms()) > 0 || plan.LiftFormerAlarms(o) != nil {
				t.Errorf("alarms %v are left", o.Alarms())
			}

			tight := startedFrom(t, release, backup, full)
			if tight.observe(t).Members[0].Status.DBQuota > 0 {
				if s := tight.step(t); s != nil {
					t.Errorf("the plan of a full cluster is %s", s)
				}
				return
			}
			tight.apply(t, tight.step(t)) // etcd does not report its quota
			if err := tight.put(t, megabyte); !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Errorf("a full cluster takes more: %v", err)
			}
			o := tight.observe(t)
			if alarms := o.Alarms(); len(alarms) != 1 || alarms[0].MemberID != o.Members[0].ID || plan.LiftFormerAlarms(o) != nil {
				t.Errorf("the alarms of a full cluster are %v, the plan %v", alarms, plan.LiftFormerAlarms(o))
			}
		})
	}
}

func backupOfAFullCluster(t *testing.T, release members.Release) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := release.Start(t, members.Options{Flags: []string{smallQuota}}).Client(t)
	for i := 0; ; i++ {
		_, err := client.Put(ctx, "key"+strings.Repeat("x", i), strings.Repeat("v", megabyte))
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stream, err := client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	path := filepath.Join(t.TempDir(), "backup")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(file, stream)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// restoredOne is a restored cluster of one, and the operator that looks at it.
type restoredOne struct {
	client  *clientv3.Client
	cluster *Cluster
}

// quotaOf gives etcd the flags that set its quota, by the size of its database.
type quotaOf func(size int64) (flags []string)

func withRoom(int64) []string { return nil }

// full leaves no room. The size of the database of a cluster that has just run full depends on
// how often etcd wrote it to the disk.
func full(size int64) []string { return []string{fmt.Sprintf("--quota-backend-bytes=%d", size)} }

func startedFrom(t *testing.T, release members.Release, backup string, quota quotaOf) restoredOne {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	release.Run(t, release.SnapshotTool(), "snapshot", "restore", backup, "--data-dir", data,
		"--name", "m0", "--initial-cluster", "m0=http://m0.example:2380", "--initial-advertise-peer-urls", "http://m0.example:2380",
		"--initial-cluster-token", t.Name())
	database, err := os.Stat(filepath.Join(data, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	running := release.Start(t, members.Options{Data: data, Flags: quota(database.Size())})
	c := newWorld(t, clocktesting.NewFakeClock(noon), testCluster()).cluster(testCluster())
	conn, err := c.etcd.Conn(etcd.Endpoint{URL: running.Members[0].URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.etcd.Close)
	c.change = conn
	return restoredOne{running.Client(t), c}
}

func (r restoredOne) put(t *testing.T, size int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := r.client.Put(ctx, "another", strings.Repeat("v", size))
	return err
}

// observe is what the operator sees of the members, while the restore is under way.
func (r restoredOne) observe(t *testing.T) *plan.Observation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	status, err := r.cluster.change.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.cluster.change.Members(ctx)
	if err != nil || len(list) != 1 {
		t.Fatalf("the members are %v, %v", list, err)
	}
	o := &plan.Observation{Source: scriptSource("r1"), Quorum: true, Members: []plan.MemberState{{Member: list[0], Status: &status}}}
	o.Status.RestoredFrom = manifest.RestoredFrom(o.Source)
	return o
}

func (r restoredOne) step(t *testing.T) plan.Step {
	t.Helper()
	return plan.LiftFormerAlarms(r.observe(t))
}

func (r restoredOne) apply(t *testing.T, s plan.Step) {
	t.Helper()
	if s == nil {
		t.Fatal("nothing is planned")
	}
	if err := r.cluster.apply(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}
