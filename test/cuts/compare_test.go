//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cuts

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/test/members"
)

// summary is what a cut has shown.
type summary struct {
	acked, lost int
	inLog       int // lost ones that the survivor had in its log
	replayed    int // those that it had in its log alone, and that are restored
	hashes      int
	unknown     int64 // revisions between the restored one and the highest that the status allowed
}

// truth is what a client saw of the survivor, up to its end.
func (c *cut) truth() *members.Truth { return c.truths[c.survivor] }

// survivorHash compares the survivor's own hash with what its client saw.
func (c *cut) survivorHash(t *testing.T) {
	t.Helper()
	c.truth().Await(t, c.has)
	resp, err := c.clients[c.survivor].HashKV(t.Context(), c.survivor.URL, c.has)
	if err != nil {
		t.Fatal(err)
	}
	if want, certain := c.truth().Hash(t, c.has, 0); certain {
		if c.hashes++; resp.Hash != want {
			t.Errorf("the survivor's hash at revision %d is %08x, and %08x by what its client saw", c.has, resp.Hash, want)
		}
	}
}

// checkStatus compares what the status said with what the writers know.
func (c *cut) checkStatus(t *testing.T) {
	t.Helper()
	known, way := c.said.LastRevision, c.way
	if way.Member != c.name {
		t.Errorf("the survivor is %s, and the status names %s", c.name, way.Member)
	}
	last := c.writers.last()
	for _, truth := range c.truths {
		last = max(last, truth.Last())
	}
	if recorded := c.ops.cluster(t).Status.Record.Revision; known < recorded || known > last {
		t.Errorf("the status says that revision %d was committed, %d is recorded, and the clients know %d", known, recorded, last)
	}
	if way.Revision > c.has || c.stored.EtcdRevision < way.Revision || c.stored.EtcdRevision > c.has {
		t.Errorf("the status says that the survivor has revision %d, its backup %d, and it has %d", way.Revision, c.stored.EtcdRevision, c.has)
	}
	if c.has < c.before && !c.hasRestarted() {
		t.Errorf("the survivor has revision %d, and had %d before", c.has, c.before)
	}
	loss := fmt.Sprintf("the last revision known to be committed was %d: no known revision is lost; perhaps the last writes are", known)
	switch behind := known - way.Revision; {
	case behind == 1:
		loss = fmt.Sprintf("the last revision known to be committed was %d: at most 1 known revision is lost, and perhaps later writes", known)
	case behind > 1:
		loss = fmt.Sprintf("the last revision known to be committed was %d: at most %d known revisions are lost, and perhaps later writes", known, behind)
	}
	restarted := ""
	if c.hasRestarted() {
		restarted = " since its restart, and serves no clients without a quorum"
	}
	if want := fmt.Sprintf("%s has revision %d%s; its log may hold later ones; %s", c.name, way.Revision, restarted, loss); way.Message != want || way.NotServing != c.hasRestarted() {
		t.Errorf("the status says %q, want %q", way.Message, want)
	}
	if c.bump > 0 && c.has+c.bump <= last {
		t.Errorf("the new cluster begins at revision %d, and clients know %d", c.has+c.bump, last)
	}
}

// checkLoss compares what the status said of the restore with what is restored.
func (c *cut) checkLoss(t *testing.T) {
	t.Helper()
	known, lowest, highest := c.said.LastRevision, c.choice.Revision, c.choice.HighestRevision
	if n := c.stored.UnappliedEntries; n == nil || lowest != c.stored.EtcdRevision || highest != lowest+*n {
		t.Errorf("the choice is %+v, and the status of the backup %+v", c.choice, c.stored)
	}
	if c.has < lowest || c.has > highest {
		t.Errorf("revision %d is restored, and the status says from %d to %d", c.has, lowest, highest)
	}
	least, most := max(0, known-highest), max(0, known-lowest)
	var loss string
	switch {
	case most == 0:
		loss = "no known revision is lost; perhaps the last writes are"
	case least == most && most == 1:
		loss = "1 known revision is lost, and later writes"
	case least == most:
		loss = fmt.Sprintf("%d known revisions are lost, and later writes", most)
	case least > 0:
		loss = fmt.Sprintf("%d to %d known revisions are lost, and later writes", least, most)
	case most == 1:
		loss = "at most 1 known revision is lost, and perhaps later writes"
	default:
		loss = fmt.Sprintf("at most %d known revisions are lost, and perhaps later writes", most)
	}
	if !strings.HasPrefix(c.choice.Message, fmt.Sprintf("revision %d is restored", lowest)) || !strings.HasSuffix(c.choice.Message, ": "+loss) {
		t.Errorf("the status says %q, want %q", c.choice.Message, loss)
	}
	if highest == lowest != !strings.Contains(c.choice.Message, "from the log of the survivor") {
		t.Errorf("the status says %q, and the log holds %d entries", c.choice.Message, highest-lowest)
	}
	if lost := max(0, known-c.has); lost < least || lost > most {
		t.Errorf("%d known revisions are lost, and the status says %q", lost, c.choice.Message)
	}
	c.unknown = highest - c.has
	// Each known revision was a write, so nobody knows more lost ones than the status says.
	missing := map[int64]bool{}
	for _, truth := range c.truths {
		for revision := range truth.Changes() {
			missing[revision] = true
		}
	}
	for revision := range c.writers.acked {
		missing[revision] = true
	}
	maps.DeleteFunc(missing, func(revision int64, _ bool) bool { return revision <= c.has || revision > known })
	if int64(len(missing)) > most {
		t.Errorf("%d known revisions are lost, and the status says %q", len(missing), c.choice.Message)
	}
}

// compare compares the restored cluster with the survivor, and both with what the writers know.
func (c *cut) compare(t *testing.T) {
	t.Helper()
	client := c.restored.Client(t)
	at := c.has + c.bump
	var got *clientv3.GetResponse
	got, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithRev(at))
	if err != nil {
		t.Fatalf("what the survivor had at revision %d is not there: %v", c.has, err)
	}
	if got.Header.Revision > at+int64(len(c.writers.ttls)) { // leases may have ended
		t.Errorf("the restored cluster is at revision %d, want %d", got.Header.Revision, at)
	}
	want := c.truth().At(c.has)
	if len(got.Kvs) != len(want) {
		t.Errorf("there are %d keys, and the survivor had %d", len(got.Kvs), len(want))
	}
	for i := range min(len(want), len(got.Kvs)) {
		if got.Kvs[i].String() != want[i].KV.String() {
			t.Errorf("there is %.200s, and the survivor had %.200s", got.Kvs[i], want[i].KV)
		}
	}
	if c.bump == 0 {
		resp, err := client.HashKV(t.Context(), c.restored.Members[0].URL, at)
		if err != nil {
			t.Fatal(err)
		}
		if sum, certain := c.truth().Hash(t, at, 0); certain {
			if c.hashes++; resp.Hash != sum {
				t.Errorf("the hash is %08x, and %08x by what a client of the survivor saw", resp.Hash, sum)
			}
		}
	}
	put, err := client.Put(t.Context(), "new", "cluster")
	if err != nil {
		t.Fatal(err)
	}
	c.back = time.Since(c.chosen)
	if put.Header.Revision <= at {
		t.Errorf("the first write is at revision %d, and the data at %d", put.Header.Revision, at)
	}
	c.compareAcknowledged(t)
	c.compareHistories(t)
}

// compareAcknowledged compares the history of the survivor with the acknowledgements.
func (c *cut) compareAcknowledged(t *testing.T) {
	t.Helper()
	history := c.truth().Changes()
	logs := c.unapplied()
	for revision, changes := range c.writers.acked {
		c.acked++
		there := map[string]written{}
		for _, change := range history[revision] {
			there[string(change.KV.Key)] = written{string(change.KV.Value), change.KV.Lease}
		}
		// Entries that no quorum had may be in place of those that others have committed.
		if revision > c.has || revision > c.applied && !maps.Equal(there, changes) {
			c.lost++
			for _, w := range changes {
				if w.value != "" && bytes.Contains(logs, []byte(w.value)) {
					t.Errorf("revision %d was acknowledged with %.300v, which the survivor had in its log, and which is lost", revision, changes)
					c.inLog++
					break
				}
			}
			continue
		}
		if revision > c.applied {
			c.replayed++
		}
		if !maps.Equal(there, changes) {
			t.Errorf("revision %d was acknowledged with %.300v, and the survivor has %.300v", revision, changes, there)
		}
	}
	for revision, changes := range history {
		for _, change := range changes {
			if key, value := string(change.KV.Key), string(change.KV.Value); revision <= c.has && !change.Tombstone && c.writers.sent[value] != key {
				t.Errorf("revision %d has %s=%.100s, which nobody has sent", revision, key, value)
			}
		}
	}
}

// unapplied are the entries in the survivor's log after the last one that it has applied.
func (c *cut) unapplied() []byte {
	var all []byte
	for index, entry := range c.log {
		if index > c.index {
			all = append(append(all, entry...), 0)
		}
	}
	return all
}

// compareHistories compares what the clients of the members saw: there is one history.
func (c *cut) compareHistories(t *testing.T) {
	t.Helper()
	history, of := map[int64]string{}, map[int64]string{}
	for m, truth := range c.truths {
		for revision, changes := range truth.Changes() {
			if truth == c.truth() && revision > c.applied {
				continue // nobody knows whether it was committed
			}
			var lines []string
			for _, change := range changes {
				lines = append(lines, fmt.Sprint(change.Sub, change.Tombstone, change.KV))
			}
			text := strings.Join(lines, "\n")
			if before, there := history[revision]; there && before != text {
				t.Errorf("revision %d of %s is %.300s, and of %s %.300s", revision, m.URL, text, of[revision], before)
			}
			history[revision], of[revision] = text, m.URL
		}
	}
}

// buckets are the contents of etcd's database without the keys, by bucket.
func buckets(t *testing.T, data string) map[string]map[string]string {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(data, "member", "snap", "db"), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	all := map[string]map[string]string{}
	err = db.View(func(tx *bbolt.Tx) error {
		for _, name := range []string{"lease", "authUsers", "authRoles", "alarm"} {
			pairs := map[string]string{}
			if bucket := tx.Bucket([]byte(name)); bucket != nil {
				if err := bucket.ForEach(func(key, value []byte) error {
					pairs[string(key)] = string(value)
					return nil
				}); err != nil {
					return err
				}
			}
			all[name] = pairs
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (c *cut) report(t *testing.T) {
	t.Helper()
	t.Logf("%+v", c.schedule)
	t.Logf("%d acknowledged revisions and %d requests without an answer; the survivor had revision %d (%d before it was alone), and %d was known; "+
		"%d acknowledged revisions are lost, of which %d were in its log; %d others come from its log, of which the status allowed %d more; %d hashes; back after %.1f s",
		c.acked, c.writers.unanswered, c.applied, c.before, c.said.LastRevision, c.lost, c.inLog, c.replayed, c.unknown, c.hashes, c.back.Seconds())
}
