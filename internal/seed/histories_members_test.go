//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupobject"
	"github.com/etcd-operator/etcd-operator/pkg/changelog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/recorder"
	"github.com/etcd-operator/etcd-operator/pkg/rewind"
	"github.com/etcd-operator/etcd-operator/pkg/selection"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/volume"
	"github.com/etcd-operator/etcd-operator/test/environment"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// points is how much is restored of a history.
type points struct{ revisions, moments int }

// somePoints are restored in each run of the tests, allPoints of the histories that HISTORIES asks for.
var somePoints, allPoints = points{6, 2}, points{20, 5}

// Random histories of a real etcd: transactions, deletions, leases that expire, compactions, large
// values, backups, and recorders that take over from each other. Whatever revision or moment is
// restored, it has what etcd's own client saw: key by key, and by etcd's own hash. Every second
// history has TLS and authentication.
//
// HISTORIES is how many of each release, HISTORIES_FIRST the seed of the first, and HISTORIES_ETCD the
// only release, such as 3.6. Without HISTORIES, each release has one, with a seed of its own.
func TestRandomHistoriesComeBackExactly(t *testing.T) {
	first, number := environment.Number(t, "HISTORIES_FIRST", 0), environment.Number(t, "HISTORIES", 0)
	ran := 0
	for i, release := range members.Releases(t) {
		only := os.Getenv("HISTORIES_ETCD")
		if release.Minor() == "3.4" || only != "" && only != release.Minor() {
			continue // 3.4 hashes nothing that it has compacted
		}
		first, number, restored := first, number, allPoints
		if number == 0 {
			first, number, restored = first+uint64(i), 1, somePoints // with and without TLS
		}
		for seed := first; seed < first+number; seed++ {
			ran++
			t.Run(fmt.Sprintf("%s seed %d", release.Minor(), seed), func(t *testing.T) {
				t.Parallel() // they mostly wait
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("the same requests again: HISTORIES_ETCD=%s HISTORIES_FIRST=%d HISTORIES=1", release.Minor(), seed)
					}
				})
				h := newHistory(t, release, seed)
				h.live(t)
				h.restoreAll(t, restored)
			})
		}
	}
	if ran == 0 {
		t.Error("there is no such history")
	}
}

// history is a life of an etcd, what its client saw, and what the operators store of it.
type history struct {
	release members.Release
	version etcd.Version
	rng     *rand.Rand
	secured *members.TLS // nil: neither TLS nor authentication
	cluster *members.Cluster
	client  *clientv3.Client
	conn    *etcd.Conn
	truth   *members.Truth

	clusterID         uint64
	revision          int64 // that the client knows
	compacted, oldest int64 // oldest that can be restored
	ttls              map[clientv3.LeaseID]int64
	begun, ended      map[int64]time.Time // of the client's writes, by their revision
	hashes            int

	place *location.Location
	stop  func() // ends the recorder

	mu       sync.Mutex
	end      *changelog.Segment // the last one with changes, or the first
	segments []*changelog.Segment
}

// quick makes elections and the ends of leases fast.
func quick(o members.Options) members.Options {
	o.Flags = append(o.Flags, "--heartbeat-interval=50", "--election-timeout=500")
	return o
}

func newHistory(t *testing.T, release members.Release, seed uint64) *history {
	t.Helper()
	h := &history{
		release: release, version: parsed(t, release), rng: rand.New(rand.NewPCG(seed, 11)),
		revision: 1, compacted: 1, oldest: 1, ttls: map[clientv3.LeaseID]int64{}, begun: map[int64]time.Time{}, ended: map[int64]time.Time{},
	}
	var config *tls.Config
	if seed%2 == 1 {
		h.secured = members.NewTLS(t)
		config = h.secured.ClientConfig(t, "root")
	}
	h.cluster = release.Start(t, quick(members.Options{TLS: h.secured}))
	connections := etcd.NewClient(config)
	t.Cleanup(connections.Close)
	user := etcd.Credentials{}
	if h.secured != nil {
		user = etcd.Credentials{Username: "root", Password: "a password"}
		admin := h.cluster.Client(t)
		_, err := admin.UserAdd(t.Context(), user.Username, user.Password)
		if err == nil {
			_, err = admin.UserGrantRole(t.Context(), user.Username, "root")
		}
		if err == nil {
			_, err = admin.AuthEnable(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		connections.SetCredentials(user)
	}
	var err error
	url := h.cluster.Members[0].URL
	h.client, err = clientv3.New(clientv3.Config{Endpoints: []string{url}, TLS: config, Username: user.Username, Password: user.Password, Logger: zap.NewNop(), MaxCallSendMsgSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.client.Close() })
	if h.conn, err = connections.Conn(etcd.Endpoint{URL: url}); err != nil {
		t.Fatal(err)
	}
	h.truth = members.Watch(t, h.client)
	shelf, err := volume.Open(t.Context(), volume.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shelf.Close() })
	h.place = &location.Location{Store: shelf, Key: "orders/etcd.backup"}
	return h
}

// live makes the history: the log begins somewhere in it, with the first backup.
func (h *history) live(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	h.steps(ctx, t, 30+h.rng.IntN(30), false)
	h.record(t)
	h.oldest = h.compacted
	h.backUp(ctx, t)
	h.steps(ctx, t, 120+h.rng.IntN(80), true)
	h.awaitStored(t, h.head(ctx, t))
	h.awaitHash(ctx, t)
	h.stop()
	h.checkUntil(t)
	for _, m := range h.cluster.Members {
		m.Kill(t)
	}
}

func (h *history) steps(ctx context.Context, t *testing.T, n int, stored bool) {
	t.Helper()
	for range n {
		began := time.Now()
		var header int64
		var changed bool // otherwise the revision is of a lease that has ended
		var err error
		switch what := h.rng.IntN(40); {
		case what < 4:
			ttl := 1000 + h.rng.Int64N(9000)
			if h.rng.IntN(2) == 0 {
				ttl = 1 // it ends by itself
			}
			var lease *clientv3.LeaseGrantResponse
			if lease, err = h.client.Grant(ctx, ttl); err == nil {
				h.ttls[lease.ID] = ttl
			}
		case what < 6:
			if id := h.anyLease(); id != 0 {
				if _, err = h.client.Revoke(ctx, id); errors.Is(err, rpctypes.ErrLeaseNotFound) {
					err = nil // it has ended
				}
			}
		case what < 8:
			var resp *clientv3.DeleteResponse
			if resp, err = h.client.Delete(ctx, fmt.Sprintf("key-%d", h.rng.IntN(4)), clientv3.WithPrefix()); err == nil {
				header, changed = resp.Header.Revision, resp.Deleted > 0
			}
		case what < 10:
			h.compact(ctx, t, stored)
		case what == 10 && stored:
			h.backUp(ctx, t)
		case what == 11 && stored:
			h.stop() // another operator takes over
			h.record(t)
		case what < 14:
			h.compareHash(ctx, t)
		case what < 16:
			time.Sleep(time.Duration(h.rng.IntN(300)) * time.Millisecond) // leases end, and segments are stored
		default:
			header, changed, err = h.transact(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.revision = max(h.revision, header)
		if changed {
			h.begun[header], h.ended[header] = began, time.Now()
		}
	}
}

// transact returns the revision, and whether the transaction has made it.
func (h *history) transact(ctx context.Context) (revision int64, changed bool, err error) {
	ops := map[string]clientv3.Op{}
	for range 1 + h.rng.IntN(5) {
		key := fmt.Sprintf("key-%d", h.rng.IntN(40))
		if h.rng.IntN(4) == 0 {
			ops[key] = clientv3.OpDelete(key)
			continue
		}
		size := []int{0, 1, 10, 100, 500, 1_000, 5_000, 20_000, 200_000}[h.rng.IntN(9)]
		if h.rng.IntN(100) == 0 {
			size = 280_000 // etcd takes 1.5 MiB in a transaction
		}
		var options []clientv3.OpOption
		if id := h.anyLease(); id != 0 && h.rng.IntN(3) == 0 {
			options = append(options, clientv3.WithLease(id))
		}
		ops[key] = clientv3.OpPut(key, strings.Repeat(fmt.Sprint(h.rng.IntN(10)), size), options...)
	}
	var list []clientv3.Op
	for _, key := range slices.Sorted(maps.Keys(ops)) {
		list = append(list, ops[key])
	}
	resp, err := h.client.Txn(ctx).Then(list...).Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return 0, false, nil // it has ended meanwhile
	}
	if err != nil {
		return 0, false, err
	}
	for _, r := range resp.Responses {
		changed = changed || r.GetResponsePut() != nil || r.GetResponseDeleteRange().GetDeleted() > 0
	}
	return resp.Header.Revision, changed, nil
}

// anyLease returns a lease that may have ended.
func (h *history) anyLease() clientv3.LeaseID {
	if len(h.ttls) == 0 {
		return 0
	}
	return slices.Sorted(maps.Keys(h.ttls))[h.rng.IntN(len(h.ttls))]
}

// head is the last revision, also of leases that end.
func (h *history) head(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	resp, err := h.client.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Revision
}

// compact removes what neither the watch nor the recorder waits for.
func (h *history) compact(ctx context.Context, t *testing.T, stored bool) {
	t.Helper()
	to := h.compacted + h.rng.Int64N(h.revision-h.compacted+1)
	if to <= h.compacted {
		return
	}
	h.truth.Await(t, to)
	if stored {
		h.awaitStored(t, to)
	}
	if _, err := h.client.Compact(ctx, to, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	h.compacted = to
}

// compareHash compares what the client saw with etcd's own hash of all that it still has.
func (h *history) compareHash(ctx context.Context, t *testing.T) {
	t.Helper()
	revision := h.compacted + h.rng.Int64N(h.revision-h.compacted+1)
	resp, err := h.client.HashKV(ctx, h.client.Endpoints()[0], revision)
	if err != nil {
		t.Fatal(err)
	}
	h.truth.Await(t, revision)
	if want, certain := h.truth.Hash(t, revision, resp.CompactRevision); certain {
		if h.hashes++; resp.Hash != want {
			t.Errorf("etcd's hash at revision %d, compacted at %d, is %08x, and %08x by what its client saw", revision, resp.CompactRevision, resp.Hash, want)
		}
	}
}

// backUp stores a backup as a schedule does.
func (h *history) backUp(ctx context.Context, t *testing.T) {
	t.Helper()
	revision, begun := h.head(ctx, t), time.Now()
	key := backupobject.Key(h.place.Key, revision, begun)
	// The name has the second. Another one of the same second would take its place, and may have been
	// compacted since.
	if _, err := h.place.Stat(ctx, key); err == nil {
		return
	}
	stream, err := h.client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	_, err = h.place.Put(ctx, key, store.Upload{Body: stream, Size: -1, Metadata: map[string]string{
		backupobject.MetaRevision: fmt.Sprint(revision), backupobject.MetaVersion: h.release.Version,
		backupobject.MetaCluster: fmt.Sprintf("%016x", h.clusterID), backupobject.MetaStarted: begun.UTC().Format(time.RFC3339),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// record begins a log, or continues the one that is there.
func (h *history) record(t *testing.T) {
	t.Helper()
	at, err := h.conn.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.clusterID = at.ClusterID
	last, tail := at.Revision, changelog.NewTail(at.ClusterID, at.Revision)
	var known *changelog.Revision
	r := recorder.Recorder{Member: recorder.Of(h.conn), Cluster: at.ClusterID, Lag: 200 * time.Millisecond, Clock: clock.RealClock{}}
	if h.end != nil {
		last, tail, r.Since = h.end.Last, changelog.TailOf(h.end), h.end.Until
		if n := len(h.end.Revisions); n > 0 {
			known = &h.end.Revisions[n-1]
		}
	}
	r.Store = func(ctx context.Context, s *changelog.Segment) error {
		tail.Tie(s)
		text, err := s.Encode()
		if err != nil {
			return err
		}
		tail.Stored(s)
		_, err = h.place.Put(ctx, changelog.KeyOf(h.place.Key, s), store.Upload{Body: bytes.NewReader(text), Size: int64(len(text))})
		return err
	}
	r.Stored = func(s *changelog.Segment) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.end, h.segments = s, append(h.segments, s)
	}
	r.Hashes = recorder.Hashes{First: time.Second, Every: time.Second, Ask: func(ctx context.Context, revision int64) (changelog.Checkpoint, error) {
		hash, err := h.conn.HashAt(ctx, revision)
		return changelog.Checkpoint{Revision: revision, Compacted: max(hash.Compacted, 0), Hash: hash.Sum}, err
	}}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	enough := errors.New("enough")
	go func() { done <- r.Run(ctx, last, known) }()
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel(enough)
		if err := <-done; !errors.Is(err, enough) {
			t.Errorf("the recorder ended: %v", err)
		}
	}
	t.Cleanup(h.stop)
	h.awaitStored(t, last)
}

// awaitStored waits until the store has a revision.
func (h *history) awaitStored(t *testing.T, revision int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		there := h.end != nil && h.end.Last >= revision
		h.mu.Unlock()
		switch {
		case there:
			return
		case time.Now().After(end):
			h.stop()
			t.Fatalf("the log does not reach revision %d", revision)
		}
	}
}

// awaitHash waits until the log has a hash of etcd that its last changes follow.
func (h *history) awaitHash(ctx context.Context, t *testing.T) {
	t.Helper()
	for range 100 {
		h.mu.Lock()
		there := slices.ContainsFunc(h.segments, func(s *changelog.Segment) bool { return s.Checkpoint != nil })
		h.mu.Unlock()
		if there {
			return
		}
		put, err := h.client.Put(ctx, "key-3", "another segment")
		if err != nil {
			t.Fatal(err)
		}
		h.revision = put.Header.Revision
		h.awaitStored(t, h.revision)
	}
	t.Error("the log has no hash of etcd")
}

// checkUntil checks what each segment promises: each write that was acknowledged before its Until is in
// it, or in those before it.
func (h *history) checkUntil(t *testing.T) {
	t.Helper()
	for revision, ended := range h.ended {
		for _, s := range h.segments {
			if ended.Before(s.Until) && s.Last < revision {
				t.Errorf("revision %d was acknowledged at %s, and the log up to %s ends with %d", revision, ended, s.Until, s.Last)
			}
		}
	}
}

func (h *history) restoreAll(t *testing.T, restored points) {
	t.Helper()
	last := h.end.Last
	h.truth.Await(t, last)
	for range restored.revisions {
		revision := h.oldest + h.rng.Int64N(last-h.oldest+1)
		h.restore(t, fmt.Sprintf("revision %d", revision), &api.RestoreSpec{Pick: api.RestorePickNewest, Revision: revision}, revision)
	}
	since, until := h.segments[0].Until, h.end.Until
	for range restored.moments {
		moment := since.Add(time.Duration(h.rng.Int64N(int64(until.Sub(since)))))
		at := metav1.NewTime(moment)
		h.restore(t, "moment "+moment.Format(time.RFC3339Nano), &api.RestoreSpec{Pick: api.RestorePickNewest, Time: &at}, h.expectedAt(t, moment))
	}
	t.Logf("revisions %d to %d, %d segments, %d hashes of etcd compared with what its client saw, %d restores", h.oldest, last, len(h.segments), h.hashes, restored.revisions+restored.moments)
}

// expectedAt is the revision that the log has received last at a moment. Nothing that began later is
// in it.
func (h *history) expectedAt(t *testing.T, moment time.Time) int64 {
	t.Helper()
	expected := h.segments[0].First - 1
	for _, s := range h.segments {
		for _, r := range s.Revisions {
			if !r.At.After(moment) {
				expected = max(expected, r.Main)
			}
		}
	}
	if begun := h.begun[expected]; begun.After(moment) {
		t.Errorf("the moment %s has revision %d, which began at %s", moment, expected, begun)
	}
	return expected
}

// restore restores as the operators do, and compares.
func (h *history) restore(t *testing.T, name string, spec *api.RestoreSpec, revision int64) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		v, passed, err := selection.Find(t.Context(), h.place, spec, nil)
		if err != nil {
			t.Fatalf("%v; passed over %q", err, passed)
		}
		if got := cmp.Or(v.Revision, v.EtcdRevision); got != revision {
			t.Fatalf("revision %d was found, want %d", got, revision)
		}
		r := Restore{
			Dir: t.TempDir(), DataDir: filepath.Join(t.TempDir(), "data"), Tool: h.release.Program(h.release.SnapshotTool()),
			Name: "m0", PeerURL: "http://m0.example:2380", ClusterToken: "a-token", Out: io.Discard, Err: io.Discard,
			Revision: revision, SnapshotSize: v.SnapshotSize,
		}
		write(t, filepath.Join(r.Dir, snapshotFile), h.fetch(t, v))
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		restored := h.release.Start(t, quick(members.Options{Data: r.DataDir, TLS: h.secured}))
		h.compare(t, restored.Client(t), revision)
	})
}

// fetch reads a backup and its log, and compares the SHA-256.
func (h *history) fetch(t *testing.T, v selection.Verified) string {
	t.Helper()
	keys := []string{v.Key}
	if v.SnapshotSize > 0 {
		objects, err := selection.Segments(t.Context(), h.place, v.ClusterID, v.EtcdRevision, v.Revision)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			keys = append(keys, o.Key)
		}
	}
	var content bytes.Buffer
	for _, key := range keys {
		body, err := h.place.Get(t.Context(), key, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = content.ReadFrom(body)
		if err := errors.Join(err, body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if sum := sha256.Sum256(content.Bytes()); hex.EncodeToString(sum[:]) != v.SHA256 {
		t.Errorf("the SHA-256 is %x, want %s", sum, v.SHA256)
	}
	return content.String()
}

func (h *history) compare(t *testing.T, client *clientv3.Client, revision int64) {
	t.Helper()
	want := h.truth.At(revision)
	got := members.Everything(t, client, revision)
	brief := false // a lease that ends, and its keys, by now
	for _, c := range want {
		ttl := h.ttls[clientv3.LeaseID(c.KV.Lease)]
		brief = brief || c.KV.Lease != 0 && ttl < 1000
	}
	if head := got.Header.Revision; head != revision && (!brief || head < revision) {
		t.Errorf("it is at revision %d, want %d", head, revision)
	}
	if len(got.Kvs) != len(want) {
		t.Fatalf("it has %d keys, want %d", len(got.Kvs), len(want))
	}
	leased := map[int64]bool{}
	for i, c := range want {
		if got.Kvs[i].String() != c.KV.String() {
			t.Errorf("it has %.200s, want %.200s", got.Kvs[i], c.KV)
		}
		if c.KV.Lease != 0 {
			leased[c.KV.Lease] = true
		}
	}
	if sum, certain := h.truth.Hash(t, revision, revision); certain {
		if got := hashAt(t, client, revision); got != sum {
			t.Errorf("etcd's hash is %08x, want %08x", got, sum)
		}
	}
	for id := range leased {
		granted := h.ttls[clientv3.LeaseID(id)]
		lease, err := client.TimeToLive(t.Context(), clientv3.LeaseID(id))
		switch {
		case err != nil:
			t.Error(err)
		case lease.GrantedTTL == granted || lease.GrantedTTL == rewind.EndedLeaseTTL:
		case lease.TTL >= 0 || granted >= 1000:
			t.Errorf("the lease %x has the TTL %d, want %d, or %d if it ended", id, lease.GrantedTTL, granted, rewind.EndedLeaseTTL)
		}
	}
	if brief || len(want) == 0 {
		return
	}
	kv := want[0].KV
	put, err := client.Put(t.Context(), string(kv.Key), "after")
	if err != nil {
		t.Fatal(err)
	}
	after, err := client.Get(t.Context(), string(kv.Key))
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Kvs) != 1 || put.Header.Revision != revision+1 || after.Kvs[0].Version != kv.Version+1 || after.Kvs[0].CreateRevision != kv.CreateRevision {
		t.Errorf("a write at revision %d makes %v of %.200s", put.Header.Revision, after.Kvs, kv)
	}
}
