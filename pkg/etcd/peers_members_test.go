//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"context"
	"errors"
	"testing"

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
			peer := etcd.Endpoint{URL: learner.PeerURL}
			theirs, err := conn(c.Members[0]).HashKV(t.Context(), status.Revision)
			must(t, err)
			ours, err := etcd.PeerHashKV(t.Context(), peer, status.Revision)
			must(t, err)
			earlier, err := etcd.PeerHashKV(t.Context(), peer, status.Revision-1)
			must(t, err)
			if ours != theirs || ours.Sum == 0 || earlier == ours {
				t.Errorf("the learner has %+v, the others %+v, and a revision earlier %+v", ours, theirs, earlier)
			}
			for _, m := range c.Members[:3] {
				want, err := conn(m).Keys(t.Context(), status.Revision)
				must(t, err)
				if got, err := conn(learner).Keys(t.Context(), status.Revision); err != nil || got != want || got.Count != 1 {
					t.Errorf("the learner has %+v, and %s %+v: %v", got, m.URL, want, err)
				}
			}
			if _, err := etcd.PeerHashKV(t.Context(), peer, 1000); err == nil {
				t.Error("it has the hash of a revision to come")
			}
			learner.Kill(t)
			connected(false)
		})
	}
}
