//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// An import relies on what its members say of a learner.
func TestALearnerIsComparedWithTheOthers(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			// etcd would refuse the learner for five seconds.
			c := r.Start(t, members.Options{Size: 3, Flags: []string{"--strict-reconfig-check=false"}})
			admin := c.Client(t)
			members.Put(t, admin, "a", "1")
			learner := c.JoinLearner(t, admin)
			client := etcd.NewClient(nil)
			t.Cleanup(client.Close)
			conn := func(m *members.Member) *etcd.Conn {
				got, err := client.Conn(etcd.Endpoint{URL: m.URL})
				must(t, err)
				return got
			}
			var status etcd.Status
			members.Await(t, "the learner has the data", func(ctx context.Context) (err error) {
				if status, err = conn(learner).Status(ctx); err == nil && status.Revision < 2 {
					return errors.New("it is behind")
				}
				return err
			})
			connected := func(want bool) {
				t.Helper()
				for _, m := range c.Members[:3] {
					members.Await(t, m.URL+" is connected to it or not", func(ctx context.Context) error {
						if got, err := conn(m).ConnectedTo(ctx, status.MemberID); err != nil || got != want {
							return errors.Join(errors.New("it says the opposite"), err)
						}
						return nil
					})
				}
			}
			connected(true)
			if got, err := conn(c.Members[0]).ConnectedTo(t.Context(), 12345); err != nil || got {
				t.Errorf("connected to a stranger: %t, %v", got, err)
			}
			for i := 0; i < 1200; i += 100 { // several pages
				var puts []clientv3.Op
				for j := range 100 {
					puts = append(puts, clientv3.OpPut(fmt.Sprintf("many/%05d", i+j), "2"))
				}
				_, err := admin.Txn(t.Context()).Then(puts...).Commit()
				must(t, err)
			}
			digest := func(m *members.Member, revision int64) (d etcd.Digest) {
				members.Await(t, "the data of "+m.URL, func(ctx context.Context) (err error) {
					d, err = conn(m).Digest(ctx, revision)
					return err
				})
				return d
			}
			for _, m := range c.Members[:3] {
				if got, want := digest(learner, 14), digest(m, 14); got != want || got.Keys != 1201 {
					t.Errorf("the learner has %+v, and %s %+v", got, m.URL, want)
				}
			}
			members.Put(t, admin, "many/00700", "3")
			value := digest(learner, 15)
			members.Put(t, admin, "many/00700", "3")
			if version, before := digest(learner, 16), digest(learner, 14); value == before || version == value || version.Keys != 1201 {
				t.Errorf("after a change of a value, %+v, and of a version, %+v", value, version)
			}
			if got, err := conn(learner).Digest(t.Context(), 1000); err == nil {
				t.Errorf("it has the data of a revision to come: %+v", got)
			}
			_, err := admin.Compact(t.Context(), 15)
			must(t, err)
			if got := digest(learner, 16); got != digest(c.Members[0], 16) {
				t.Errorf("after a compaction, the learner has %+v", got)
			}
			members.Await(t, "a compacted revision has no data", func(ctx context.Context) error {
				got, err := conn(c.Members[0]).Digest(ctx, 14)
				if errors.Is(err, rpctypes.ErrCompacted) {
					return nil
				}
				return fmt.Errorf("it has %+v: %w", got, err)
			})
			learner.Kill(t)
			connected(false)
		})
	}
}
