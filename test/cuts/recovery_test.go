//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/backupserver"
	"github.com/etcd-operator/etcd-operator/pkg/location"
	"github.com/etcd-operator/etcd-operator/pkg/selection"

	"github.com/etcd-operator/etcd-operator/internal/seed"
	"github.com/etcd-operator/etcd-operator/test/members"
)

// recovery is what the operators say and do.
type recovery struct {
	said     *api.RecoveryStatus // when the person chooses
	way      api.RecoveryWay     // that the person takes
	otherWay api.RecoveryWay     // the second survivor's, with five members
	choice   api.RecoveryChoice  // once the data of the survivor is stored
	chosen   time.Time
	asked    *api.EtcdRestore // by the etcd operator
	stored   api.BackupStatus // of the survivor's data
	restored *members.Cluster
	data     string // directory of the restored member
	// has is the revision of the survivor at its end, with its log from applyLog on. applied is that without, and
	// index the last raft entry that it has applied.
	has, applied int64
	index        uint64
	bump         int64
	log          map[uint64][]byte // of the survivor
	back         time.Duration     // from the choice to the first write
}

// choose waits for the ways out, takes the first survivor of them, and waits until the etcd operator asks for
// the restore. The ends of the logs become known meanwhile, and the operator may name the other survivor.
func (c *cut) choose(t *testing.T) {
	t.Helper()
	status := func() *api.RecoveryStatus { return c.ops.cluster(t).Status.Recovery }
	await(t, func() bool {
		if c.said = status(); c.said == nil {
			return false
		}
		survivors := slices.DeleteFunc(slices.Clone(c.said.Ways), func(w api.RecoveryWay) bool { return w.Way != api.RecoverySurvivor })
		i := slices.IndexFunc(survivors, func(w api.RecoveryWay) bool { return w.Member == c.name })
		if i < 0 || c.other != nil && len(survivors) < 2 {
			return false
		}
		c.way = survivors[i]
		if c.other != nil {
			c.otherWay = survivors[1-i]
		}
		return true
	}, func() string {
		return fmt.Sprintf("the survivors %q are not the ways out: %+v, of %+v", []string{c.name, c.otherName}, c.said, c.ops.cluster(t).Status)
	})
	c.compareWays(t)
	if c.other != nil && c.said.Ways[slices.IndexFunc(c.said.Ways, func(w api.RecoveryWay) bool { return w.Way == api.RecoverySurvivor })].Member == c.otherName {
		c.turn()
	}
	c.chosen = time.Now()
	c.ops.annotate(t, api.RecoverAnnotation, "survivor="+c.way.Member)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c.asked = c.ops.restore(t); c.asked != nil {
			break
		}
		st := status()
		failed := st != nil && st.Choice != nil && st.Choice.Phase == api.RecoveryFailed && st.Choice.Value == "survivor="+c.way.Member
		switch {
		case failed && c.other != nil && strings.Contains(st.Choice.Reason, ": choose "+c.otherName+";"):
			c.turn()
			c.ops.annotate(t, api.RecoverAnnotation, "survivor="+c.way.Member)
		case failed, time.Now().After(end):
			t.Fatalf("the choice does not lead to a restore: %+v: %+v", st, st.Choice)
		}
	}
	c.choice = *status().Choice
	for _, b := range c.ops.backups(t) {
		if b.Name == c.choice.Backup {
			c.stored = b.Status
		}
	}
	if c.hasRestarted() { // it serves no clients: its metrics are all that it says
		c.index = uint64(c.way.RaftIndex) // from a status of etcd
	} else {
		at, err := c.clients[c.survivor].Status(t.Context(), c.survivor.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.has, c.index = at.Header.Revision, at.RaftAppliedIndex
		c.survivorHash(t)
	}
	c.bump = c.asked.Spec.BumpRevision
	c.survivor.Kill(t) // as the restore operator does before the new cluster starts
	if c.other != nil {
		c.other.Kill(t)
	}
	c.log = logged(t, c.survivor.Dir())
	if c.hasRestarted() {
		c.readByHand(t)
	}
}

// compareWays compares the ways of two survivors: the status names first what loses less.
func (c *cut) compareWays(t *testing.T) {
	t.Helper()
	if c.other == nil {
		return
	}
	at, err := c.clients[c.other].Status(t.Context(), c.other.URL) // it has not restarted
	if err != nil {
		t.Fatal(err)
	}
	if c.otherWay.Member != c.otherName || c.otherWay.Revision != at.Header.Revision {
		t.Errorf("the status says that %s has revision %d, and %s has %d", c.otherWay.Member, c.otherWay.Revision, c.otherName, at.Header.Revision)
	}
	if c.said.LastRevision < at.Header.Revision {
		t.Errorf("the status says that revision %d was committed, and %s has %d", c.said.LastRevision, c.otherName, at.Header.Revision)
	}
	first := c.said.Ways[0]
	if first.Way == api.RecoverySurvivor && first.Revision < max(c.way.Revision, c.otherWay.Revision) {
		t.Errorf("the status names %s first, with revision %d, and the survivors have %d and %d", first.Member, first.Revision, c.way.Revision, c.otherWay.Revision)
	}
}

// turn makes the other survivor the one that the person chooses.
func (c *cut) turn() {
	c.survivor, c.other = c.other, c.survivor
	c.name, c.otherName = c.otherName, c.name
	c.way, c.otherWay = c.otherWay, c.way
	c.before = c.truths[c.survivor].Last()
}

// hasRestarted reports whether the survivor serves no clients since its restart.
func (c *cut) hasRestarted() bool { return c.restarted == c.survivor }

// restore starts the new cluster.
func (c *cut) restore(t *testing.T) {
	t.Helper()
	c.data = filepath.Join(t.TempDir(), "data")
	c.restoreBackup(t)
	c.applyLog(t)
	c.restored = c.release.Start(t, members.Options{Data: c.data, TLS: c.tls, Flags: quick, PeerURL: c.survivor.PeerURL})
}

// readByHand learns what a survivor had that served nobody: etcd's own tool restores its file, and a client
// reads that.
func (c *cut) readByHand(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(c.survivor.Database())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.has = c.release.SnapshotStatus(t, file).Revision
	data := filepath.Join(t.TempDir(), "data")
	c.release.Run(t, c.release.SnapshotTool(), "snapshot", "restore", c.survivor.Database(), "--skip-hash-check", "--data-dir", data)
	read := c.release.Start(t, members.Options{Data: data, TLS: c.tls, Flags: quick})
	truth := members.Watch(t, read.Client(t))
	truth.Await(t, c.has)
	c.truths[c.survivor] = truth
}

// awaitLog waits until a member has logged something.
func (c *cut) awaitLog(t *testing.T, m *members.Member, text string) {
	t.Helper()
	await(t, func() bool { return strings.Contains(m.Log(t), text) }, func() string { return fmt.Sprintf("%s has not logged %q", m.URL, text) })
}

// restoreBackup does what the restore operator and the containers of the first member do.
func (c *cut) restoreBackup(t *testing.T) {
	t.Helper()
	spec := &c.asked.Spec
	place, err := location.Open(t.Context(), nil, namespace, spec.BackupStorageType, spec.BackupSource, c.ops.store)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Close()
	found, passed, err := selection.Find(t.Context(), place, spec, nil)
	if err != nil {
		t.Fatalf("%v; passed over %q", err, passed)
	}
	if found.Path != c.stored.Key || !found.Uncertain || found.EtcdRevision != c.stored.EtcdRevision {
		t.Errorf("the restore finds %+v, and the backup of the survivor is %+v", found, c.stored)
	}
	dir := t.TempDir()
	c.fetch(t, place, found, dir)
	r := seed.Restore{
		// No network is between the old members and the new one: it has the address of an old one.
		Dir: dir, DataDir: c.data, Tool: c.release.Program(c.release.SnapshotTool()), Name: "m0", PeerURL: c.survivor.PeerURL,
		ClusterToken: fmt.Sprintf("token-%d", time.Now().UnixNano()), BumpRevision: spec.BumpRevision, Revision: found.Revision, Out: io.Discard, Err: io.Discard,
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fetch has the restore operator's server serve the backup to the first container.
func (c *cut) fetch(t *testing.T, place *location.Location, found selection.Verified, dir string) {
	t.Helper()
	const token, file = "a-token", "token"
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := backupserver.New(backupserver.Config{})
	server.Offer(clusterName, token, backupserver.Backup{Size: found.Size, SHA256: found.SHA256, Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
		return place.Get(ctx, found.Key, offset)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Run(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer cancel()
	tokens := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(tokens, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	f := seed.Fetch{
		URL: "http://" + listener.Addr().String() + backupserver.Path + clusterName, TokenFile: tokens, Size: found.Size, SHA256: found.SHA256,
		Dir: dir, DataDir: c.data, Transport: seed.Transport(), Out: io.Discard, Err: io.Discard,
	}
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// checkOld starts old members on their old data. They must have no part in the new cluster.
func (c *cut) checkOld(t *testing.T) {
	t.Helper()
	client, url := c.restored.Client(t), c.restored.Members[0].URL
	before, err := client.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if before.Header.ClusterId == c.clusterID {
		t.Errorf("the restored cluster has the ID of the old one: %x", c.clusterID)
	}
	returning := []*members.Member{c.old}
	if c.other != nil {
		returning = append(returning, c.other)
	}
	for _, m := range returning {
		m.Start(t)
	}
	for _, m := range returning {
		// Without a quorum, a member that starts serves no clients. Its messages show that it runs.
		c.awaitLog(t, m, "cluster ID mismatch")
	}
	time.Sleep(time.Second) // two elections
	old := c.cluster.Client(t, returning...)
	members.Put(t, client, "after", "the return of an old member")
	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if resp, err := old.Get(ctx, "after"); err == nil {
		t.Errorf("the old member confirms a read: %v", resp)
	}
	after, err := client.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.RaftTerm != before.RaftTerm || after.Leader != before.Leader || after.Header.ClusterId != before.Header.ClusterId || len(list.Members) != 1 {
		t.Errorf("with an old member, the new cluster is %+v with the members %v, and was %+v", after, list.Members, before)
	}
}
