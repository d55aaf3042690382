//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// life is a random history of a real etcd, and its backup.
type life struct {
	source
	cluster *members.Cluster
	rng     *rand.Rand
	// ttls are the times to live of the leases that have not ended, and ended of the others.
	ttls, ended map[clientv3.LeaseID]int64
	compacted   int64
	// snapshotSize is that of the backup if a log follows it.
	snapshotSize int64
}

// live makes a history and its backup.
func live(t *testing.T, release members.Release, seed uint64, steps int) *life {
	t.Helper()
	l := begin(t, release, seed)
	l.steps(t, steps)
	l.save(t)
	return l
}

func begin(t *testing.T, release members.Release, seed uint64) *life {
	t.Helper()
	cluster := release.Start(t, members.Options{})
	return &life{
		source:  source{release: release, client: cluster.Client(t), backup: filepath.Join(t.TempDir(), "backup"), revision: 1},
		cluster: cluster, rng: rand.New(rand.NewPCG(seed, 7)), ttls: map[clientv3.LeaseID]int64{}, ended: map[clientv3.LeaseID]int64{}, compacted: 1,
	}
}

// steps makes transactions, deletions of ranges, large values, leases that end, and compactions.
func (l *life) steps(t *testing.T, steps int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range steps {
		var header int64
		var err error
		switch l.rng.IntN(12) {
		case 0:
			var lease *clientv3.LeaseGrantResponse
			ttl := 1000 + l.rng.Int64N(9000)
			if lease, err = l.client.Grant(ctx, ttl); err == nil {
				l.ttls[lease.ID] = ttl
			}
		case 1:
			if id := l.anyLease(); id != 0 && l.rng.IntN(2) == 0 {
				_, err = l.client.Revoke(ctx, id)
				l.ended[id] = l.ttls[id]
				delete(l.ttls, id)
			}
		case 2:
			var resp *clientv3.DeleteResponse
			if resp, err = l.client.Delete(ctx, fmt.Sprintf("key-%d", l.rng.IntN(4)), clientv3.WithPrefix()); err == nil {
				header = resp.Header.Revision
			}
		case 3:
			if to := l.compacted + l.rng.Int64N(l.revision-l.compacted+1); to > l.compacted && l.rng.IntN(3) == 0 {
				_, err = l.client.Compact(ctx, to, clientv3.WithCompactPhysical())
				l.compacted = to
			}
		default:
			ops := map[string]clientv3.Op{}
			for range 1 + l.rng.IntN(5) {
				key := fmt.Sprintf("key-%d", l.rng.IntN(40))
				if l.rng.IntN(4) == 0 {
					ops[key] = clientv3.OpDelete(key)
					continue
				}
				size := []int{0, 10, 500, 5_000, 200_000}[l.rng.IntN(5)]
				var options []clientv3.OpOption
				if id := l.anyLease(); id != 0 && l.rng.IntN(3) == 0 {
					options = append(options, clientv3.WithLease(id))
				}
				ops[key] = clientv3.OpPut(key, strings.Repeat(fmt.Sprint(l.rng.IntN(10)), size), options...)
			}
			var list []clientv3.Op
			for _, key := range slices.Sorted(maps.Keys(ops)) {
				list = append(list, ops[key])
			}
			var resp *clientv3.TxnResponse
			if resp, err = l.client.Txn(ctx).Then(list...).Commit(); err == nil {
				header = resp.Header.Revision
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		l.revision = max(l.revision, header)
	}
	resp, err := l.client.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	l.revision = resp.Header.Revision
}

func (l *life) anyLease() clientv3.LeaseID {
	if len(l.ttls) == 0 {
		return 0
	}
	return slices.Sorted(maps.Keys(l.ttls))[l.rng.IntN(len(l.ttls))]
}

// At each revision of a random history, the restored etcd equals the one that lived it: key by
// key with all revisions, versions and leases, and by etcd's own hash. Later writes continue from there.
func TestEachRevisionOfABackupComesBackExactly(t *testing.T) {
	for i, release := range members.Releases(t) {
		seed := uint64(i)
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel() // etcd mostly waits for elections and the disk
			l := live(t, release, seed, 300)
			revisions := []int64{l.compacted, l.revision, l.revision - 1}
			for range 2 {
				revisions = append(revisions, l.compacted+l.rng.Int64N(l.revision-l.compacted+1))
			}
			slices.Sort(revisions)
			for _, revision := range slices.Compact(revisions) {
				l.checkAt(t, revision)
			}
		})
	}
}

func (l *life) checkAt(t *testing.T, revision int64) (output string) {
	t.Helper()
	r := restoreOf(t, l.backup, l.release)
	var out bytes.Buffer
	r.Out = io.MultiWriter(r.Out, &out)
	r.Revision, r.SnapshotSize = revision, l.snapshotSize
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := left(t, r.Dir); got != doneFile {
		t.Errorf("it has left %s", got)
	}
	client := l.release.Start(t, members.Options{Data: r.DataDir}).Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	want := members.Everything(t, l.client, revision)
	got := members.Everything(t, client, 0)
	if got.Header.Revision != revision {
		t.Errorf("it is at revision %d, want %d", got.Header.Revision, revision)
	}
	if len(got.Kvs) != len(want.Kvs) {
		t.Fatalf("revision %d has %d keys, want %d", revision, len(got.Kvs), len(want.Kvs))
	}
	leased := map[clientv3.LeaseID]int{}
	for i := range want.Kvs {
		if got.Kvs[i].String() != want.Kvs[i].String() {
			t.Errorf("revision %d has %.200s, want %.200s", revision, got.Kvs[i], want.Kvs[i])
		}
		if id := want.Kvs[i].Lease; id != 0 {
			leased[clientv3.LeaseID(id)]++
		}
	}
	for id, keys := range leased {
		lease, err := client.TimeToLive(ctx, id, clientv3.WithAttachedKeys())
		ttl, goesOn := l.ttls[id]
		if !goesOn {
			ttl = rewind.EndedLeaseTTL
		}
		if lease != nil && l.snapshotSize > 0 && lease.GrantedTTL == l.ended[id] {
			ttl = l.ended[id] // it had not ended when the recorder asked for it
		}
		if err != nil || lease.GrantedTTL != ttl || lease.TTL < ttl-120 || len(lease.Keys) != keys {
			t.Errorf("revision %d: the lease %x is %+v, %v; want a TTL of %d and %d keys", revision, id, lease, err, ttl, keys)
		}
	}
	if l.release.Minor() != "3.4" { // which hashes nothing at a compaction
		if got, want := hashAt(t, client, revision), l.compactedHash(ctx, t, revision); got != want {
			t.Errorf("the hash at revision %d is %d, want %d", revision, got, want)
		}
	}
	checkGoesOn(ctx, t, client, want.Kvs, revision)
	return out.String()
}

// compactedHash is the hash at a revision after a compaction at it. The revisions must rise.
func (l *life) compactedHash(ctx context.Context, t *testing.T, revision int64) uint32 {
	t.Helper()
	if _, err := l.client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal(err)
	}
	// In its memory, etcd keeps the hash that it made before the compaction.
	m := l.cluster.Members[0]
	m.Kill(t)
	m.Start(t)
	l.cluster.WaitServing(t)
	return hashAt(t, l.client, revision)
}

func hashAt(t *testing.T, client *clientv3.Client, revision int64) uint32 {
	t.Helper()
	resp, err := client.HashKV(t.Context(), client.Endpoints()[0], revision)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Hash
}

// checkGoesOn writes: the next revisions, versions and creations follow from the past.
func checkGoesOn(ctx context.Context, t *testing.T, client *clientv3.Client, before []*mvccpb.KeyValue, revision int64) {
	t.Helper()
	versions := map[string]*mvccpb.KeyValue{}
	for _, kv := range before {
		versions[string(kv.Key)] = kv
	}
	for i := range 40 {
		key := fmt.Sprintf("key-%d", i)
		revision++
		want := &mvccpb.KeyValue{CreateRevision: revision, Version: 1}
		if there := versions[key]; there != nil {
			want.CreateRevision, want.Version = there.CreateRevision, there.Version+1
		}
		put, err := client.Put(ctx, key, "after")
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Get(ctx, key)
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
		kv := got.Kvs[0]
		if put.Header.Revision != revision || kv.ModRevision != revision || kv.CreateRevision != want.CreateRevision || kv.Version != want.Version {
			t.Errorf("a write at revision %d makes %v, want creation %d and version %d", put.Header.Revision, kv, want.CreateRevision, want.Version)
		}
	}
}

// Clients of the replaced cluster know later revisions.
func TestAnEarlierRevisionIsRaised(t *testing.T) {
	const bump = 1_000_000_000
	for _, release := range members.Releases(t) {
		if !parsed(t, release).HasBumpRevision() {
			continue
		}
		t.Run(release.Minor(), func(t *testing.T) {
			t.Parallel()
			l := live(t, release, 5, 150)
			// A revision that only deleted has no other record to count from.
			deleted, err := l.client.Put(t.Context(), "doomed", "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = l.client.Delete(t.Context(), "doomed"); err != nil {
				t.Fatal(err)
			}
			members.Put(t, l.client, "later", "x")
			l.save(t)
			revision := deleted.Header.Revision + 1
			r := restoreOf(t, l.backup, release)
			r.Revision, r.BumpRevision = revision, bump
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			client := release.Start(t, members.Options{Data: r.DataDir}).Client(t)
			all := members.Everything(t, client, 0)
			if all.Header.Revision != revision+bump || len(all.Kvs) != len(members.Everything(t, l.client, revision).Kvs) {
				t.Errorf("it is at revision %d with %d keys, and went back to %d", all.Header.Revision, len(all.Kvs), revision)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if resp := <-client.Watch(ctx, "key-1", clientv3.WithRev(revision+1)); !errors.Is(resp.Err(), rpctypes.ErrCompacted) {
				t.Errorf("a watch from before says %v", resp.Err())
			}
		})
	}
}

// save replaces the backup.
func (s source) save(t *testing.T) {
	t.Helper()
	stream, err := s.client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	file, err := os.Create(s.backup)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(file, stream)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}
