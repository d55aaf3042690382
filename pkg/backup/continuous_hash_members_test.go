//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// corrupt changes the value of a key in the database of a member that does not run.
func corrupt(t *testing.T, m *members.Member, key string) {
	t.Helper()
	db, err := bolt.Open(m.Database(), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.Update(func(tx *bolt.Tx) error {
		records := tx.Bucket([]byte("key"))
		cursor := records.Cursor()
		for revision, text := cursor.First(); revision != nil; revision, text = cursor.Next() {
			var kv mvccpb.KeyValue
			if err := proto.Unmarshal(text, &kv); err != nil {
				return err
			}
			if string(kv.Key) != key {
				continue
			}
			kv.Value = []byte("another value")
			text, err := proto.Marshal(&kv)
			if err != nil {
				return err
			}
			return records.Put(bytes.Clone(revision), text)
		}
		return errors.New("the database has no key " + key)
	}), db.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// A follower of a real etcd has another value than the others.
func TestAMemberWithOtherDataIsFound(t *testing.T) {
	for _, r := range members.Releases(t) {
		t.Run(r.Version, func(t *testing.T) {
			t.Parallel()
			c := r.Start(t, members.Options{Size: 3})
			admin := c.Client(t)
			var source snapshot.Source
			for _, m := range c.Members {
				source.Endpoints = append(source.Endpoints, etcd.Endpoint{URL: m.URL})
			}
			put := func(key string) (cluster uint64, revision int64) {
				t.Helper()
				members.Put(t, admin, key, "value")
				got := members.Everything(t, admin, 0)
				return got.Header.ClusterId, got.Header.Revision
			}
			compare := func(key string) (got comparison) {
				t.Helper()
				cluster, revision := put(key)
				// A member that has not applied the revision is not asked for its hash.
				members.Await(t, "all members have the revision "+key, func(ctx context.Context) error {
					for _, m := range c.Members {
						if st, err := admin.Status(ctx, m.URL); err != nil {
							return err
						} else if st.Header.Revision < revision {
							return fmt.Errorf("%s has revision %d of %d", m.URL, st.Header.Revision, revision)
						}
					}
					return nil
				})
				members.Await(t, "the hashes are compared", func(ctx context.Context) (err error) {
					got, err = hashesOf(0)(ctx, source, cluster, 0, revision)
					return err
				})
				if got.agreed.Revision != revision {
					t.Errorf("at %s, the members agree on %+v", key, got.agreed)
				}
				return got
			}
			if got := compare("first"); got.differing != "" {
				t.Errorf("of equal members: %s", got.differing)
			}
			_, followers := c.Leader(t)
			members.Await(t, "the keys are in the database", func(ctx context.Context) error {
				_, err := admin.Defragment(ctx, followers[0].URL)
				return err
			})
			followers[0].Kill(t)
			corrupt(t, followers[0], "first")
			followers[0].Start(t)
			c.WaitServing(t)
			// Once two members agree, no other is asked, and the leader comes last.
			changed, other := c.Client(t, followers[0]), c.Client(t, followers[1])
			members.Await(t, "another member leads", func(ctx context.Context) error {
				st, err := changed.Status(ctx, followers[0].URL)
				if err != nil || st.Leader != st.Header.MemberId {
					return err
				}
				next, err := other.Status(ctx, followers[1].URL)
				if err != nil {
					return err
				}
				_, err = changed.MoveLeader(ctx, next.Header.MemberId)
				return err
			})
			got := compare("second")
			_, groups, _ := strings.Cut(got.differing, "(")
			if !slices.ContainsFunc(strings.Split(groups, "; "), func(g string) bool { return strings.HasPrefix(g, followers[0].URL+": ") }) {
				t.Errorf("%s differs, and the comparison says %q", followers[0].URL, got.differing)
			}
		})
	}
}
