//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/test/members"
)

func TestAFenceRefusesAllWrites(t *testing.T) {
	fence := etcd.Fence("an owner")
	if fence == etcd.Fence("another owner") {
		t.Fatal("two owners have the same alarm")
	}
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{Size: 3})
			client, conns := c.Client(t), connect(t, c, etcd.Credentials{})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			members.Put(t, client, "a", "1")
			lease, err := client.Grant(ctx, 10) // seconds: three requests later it must not have ended
			must(t, err)
			kept, err := client.Grant(ctx, 600)
			must(t, err)
			must(t, second(client.Put(ctx, "leased", "x", clientv3.WithLease(lease.ID))))

			must(t, conns[0].Raise(ctx, fence))
			must(t, conns[1].Raise(ctx, fence)) // once more
			before, err := conns[0].Revision(ctx)
			must(t, err)
			refused := map[string]error{
				"put":         second(client.Put(ctx, "a", "2")),
				"delete":      second(client.Delete(ctx, "a")),
				"transaction": second(client.Txn(ctx).Then(clientv3.OpGet("a"), clientv3.OpPut("a", "2")).Commit()),
				"compact":     second(client.Compact(ctx, before)),
				"grant":       second(client.Grant(ctx, 60)),
				"revoke":      second(client.Revoke(ctx, kept.ID)),
			}
			for what, err := range refused {
				if !errors.Is(err, rpctypes.ErrCorrupt) {
					t.Errorf("%s: %v", what, err)
				}
			}
			watching, end := context.WithCancel(ctx)
			defer end()
			accepted := map[string]error{
				"read":              second(client.Get(ctx, "a")),
				"serializable read": second(client.Get(ctx, "a", clientv3.WithSerializable())),
				"transaction without a write": second(client.Txn(ctx).If(clientv3.Compare(clientv3.Value("a"), "=", "1")).
					Then(clientv3.OpGet("a")).Else(clientv3.OpGet("b")).Commit()),
				"keep-alive":       second(client.KeepAliveOnce(ctx, kept.ID)),
				"time to live":     second(client.TimeToLive(ctx, kept.ID)),
				"list of members":  second(client.MemberList(ctx)),
				"change of users":  second(client.UserAdd(ctx, "somebody", "secret")),
				"status":           second(conns[2].Status(ctx)),
				"hash":             second(conns[2].HashKV(ctx, before)),
				"snapshot":         second(revisionOfSnapshot(ctx, t, conns[1])),
				"change of leader": moveLeader(ctx, t, c),
			}
			for what, err := range accepted {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if resp := <-client.Watch(watching, "a", clientv3.WithRev(1)); resp.Err() != nil || len(resp.Events) != 1 {
				t.Errorf("a watch says %v, %v", resp.Events, resp.Err())
			}
			// The lease ends, and stays with its key. A restarted member knows the alarm.
			members.Await(t, "the end of the lease", func(ctx context.Context) error {
				left, err := client.TimeToLive(ctx, lease.ID)
				if err == nil && left.TTL >= 0 {
					return fmt.Errorf("it has %d s", left.TTL)
				}
				return err
			})
			c.Members[1].Kill(t)
			c.Members[1].Start(t)
			c.WaitServing(t)
			for i, conn := range conns {
				members.Await(t, "the position", func(ctx context.Context) error {
					status, err := conn.Status(ctx)
					revision, readErr := conn.Revision(ctx)
					if err == nil && (revision != before || !slices.Equal(status.Alarms, []etcd.Alarm{fence})) {
						t.Errorf("member %d is at revision %d with %v; the fence was at %d", i, revision, status.Alarms, before)
					}
					return errors.Join(err, readErr)
				})
			}
			if resp, err := client.Get(ctx, "leased"); err != nil || len(resp.Kvs) != 1 {
				t.Errorf("the key of a lease that has ended: %v, %v", resp, err)
			}
			for path, want := range map[string]int{"/health": http.StatusServiceUnavailable, "/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
				got := answersHTTP(ctx, t, c.Members[0].URL+path)
				t.Logf("%s %s: %d", r.Version, path, got)
				if got != want && got != http.StatusNotFound { // before 3.5.11, and in 3.4 before a late patch
					t.Errorf("%s answers %d, want %d", path, got, want)
				}
			}

			// A fence takes the way back without a trace, and no other alarm with it.
			must(t, conns[2].Raise(ctx, etcd.Alarm{MemberID: 5, Type: etcd.AlarmCorrupt}))
			must(t, conns[0].Disarm(ctx, fence))
			status, err := conns[0].Status(ctx)
			must(t, err)
			if len(status.Alarms) != 1 || status.Alarms[0].MemberID != 5 {
				t.Errorf("the alarms are %v", status.Alarms)
			}
			must(t, conns[0].Disarm(ctx, status.Alarms[0]))
			must(t, conns[0].Disarm(ctx, fence)) // nothing
			members.Put(t, client, "a", "3")
			members.Await(t, "the lease ends", func(ctx context.Context) error {
				resp, err := client.Get(ctx, "leased")
				if err == nil && len(resp.Kvs) > 0 {
					err = errors.New("its key is there")
				}
				return err
			})
		})
	}
}

// Before 3.6, NOSPACE takes a fence away, and leaves its alarm in the list. The end of NOSPACE lets all writes in.
func TestNoSpaceTakesAFenceAwayBefore36(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			v, err := etcd.ParseVersion(r.Version)
			must(t, err)
			c := r.Start(t, members.Options{Flags: []string{"--quota-backend-bytes=1200000"}})
			client, conn := c.Client(t), connect(t, c, etcd.Credentials{})[0]
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			members.Put(t, client, "a", "1")
			refused := func(when string, want bool) {
				t.Helper()
				before, err := conn.Revision(ctx)
				must(t, err)
				got, err := conn.RefusesWrites(ctx)
				must(t, err)
				after, err := conn.Revision(ctx)
				must(t, err)
				if got != want || before != after {
					t.Errorf("%s, it refuses writes: %t, want %t; the revision was %d and is %d", when, got, want, before, after)
				}
			}
			fence := etcd.Fence("an owner")
			refused("before the fence", false)
			must(t, conn.Raise(ctx, fence))
			refused("with the fence", true)
			if _, err := client.Put(ctx, "a", strings.Repeat("v", 1_400_000)); err == nil {
				t.Error("a put above the quota is accepted")
			}
			status, err := conn.Status(ctx)
			must(t, err)
			full := etcd.Alarm{MemberID: status.MemberID, Type: etcd.AlarmNoSpace}
			if !slices.Contains(status.Alarms, fence) || !slices.Contains(status.Alarms, full) {
				t.Errorf("the alarms are %v", status.Alarms)
			}
			refused("with NOSPACE", v.KeepsFence())
			must(t, conn.Disarm(ctx, full))
			refused("after NOSPACE", v.KeepsFence())
			if _, err := client.Put(ctx, "a", "2"); errors.Is(err, rpctypes.ErrCorrupt) != v.KeepsFence() {
				t.Errorf("a put after NOSPACE: %v", err)
			}
		})
	}
}

// Each write that etcd has acknowledged to one of many writers is in a snapshot that was taken from
// any member after the fence.
func TestNoAcknowledgedWriteIsBehindAFence(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{Size: 3})
			conns := connect(t, c, etcd.Credentials{})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			const writers = 12
			var acknowledged [writers]int64    // the highest revision
			var writing, writes sync.WaitGroup // the second: each has had an answer
			for i := range writers {
				client := c.Client(t, c.Members[i%len(c.Members)])
				writes.Add(1)
				begun := sync.OnceFunc(writes.Done)
				writing.Go(func() {
					defer begun()
					for n := 0; ; n++ {
						resp, err := client.Put(ctx, fmt.Sprint("key-", i), fmt.Sprint(n))
						if errors.Is(err, rpctypes.ErrCorrupt) || ctx.Err() != nil {
							return
						}
						if err == nil {
							acknowledged[i] = resp.Header.Revision
							begun()
						}
					}
				})
			}
			writes.Wait() // a busy machine makes five writes in a second
			time.Sleep(time.Second)
			must(t, conns[0].Raise(ctx, etcd.Fence("x")))
			last, err := conns[0].Revision(ctx)
			must(t, err)
			writing.Wait()
			if got := slices.Max(acknowledged[:]); got != last || got < writers {
				t.Errorf("revision %d is acknowledged, and the fence is at %d", got, last)
			}
			for i, conn := range conns {
				if _, err := conn.Revision(ctx); err != nil {
					t.Fatal(err)
				}
				if got, err := revisionOfSnapshot(ctx, t, conn); err != nil || got != last {
					t.Errorf("the snapshot of member %d is at revision %d (%v), and the fence at %d", i, got, err, last)
				}
			}
		})
	}
}

func moveLeader(ctx context.Context, t *testing.T, c *members.Cluster) error {
	t.Helper()
	leader, followers := c.Leader(t)
	status, err := c.Client(t, followers[0]).Status(ctx, followers[0].URL)
	if err != nil {
		return err
	}
	return second(c.Client(t, leader).MoveLeader(ctx, status.Header.MemberId))
}

// revisionOfSnapshot takes a snapshot of a member and reads its revision.
func revisionOfSnapshot(ctx context.Context, t *testing.T, conn *etcd.Conn) (int64, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := conn.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	var content []byte
	for {
		piece, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		content = append(content, piece...)
	}
	name := filepath.Join(t.TempDir(), "snapshot")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		return 0, err
	}
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	span, err := rewind.ReadSpan(file)
	return span.Newest, err
}

// answersHTTP returns the status of an answer.
func answersHTTP(ctx context.Context, t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, strings.NewReader(""))
	must(t, err)
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	return resp.StatusCode
}
