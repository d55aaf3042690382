// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-operator/etcd-operator/test/ports"
)

// Join adds a member to a cluster without TLS, and waits until it has a vote. A restore may
// have given the others other URLs.
func (c *Cluster) Join(t testing.TB) *Member {
	t.Helper()
	client := c.Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	for _, m := range c.Members {
		status, err := client.Status(ctx, m.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.MemberUpdate(ctx, status.Header.MemberId, []string{m.PeerURL}); err != nil {
			t.Fatal(err)
		}
		// etcd answers before raft has applied the change, and until then silently drops the
		// next one ("possible unapplied conf change"). A later agreed entry proves that it is
		// applied.
		if _, err := client.Grant(ctx, 60); err != nil {
			t.Fatal(err)
		}
	}
	m, id := c.joinLearner(ctx, t, client)
	for {
		_, err := client.MemberPromote(ctx, id)
		if err == nil {
			break
		}
		select {
		case <-m.exited:
			t.Fatalf("%s has exited:\n%s", m.URL, m.tail())
		case <-ctx.Done():
			t.Fatalf("%s gets no vote: %v", m.URL, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	c.Members = append(c.Members, m)
	c.WaitServing(t)
	return m
}

// JoinLearner starts a learner of a cluster without TLS. The client may add members. The
// learner is none of c.Members.
func (c *Cluster) JoinLearner(t testing.TB, client *clientv3.Client) *Member {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	m, _ := c.joinLearner(ctx, t, client)
	return m
}

func (c *Cluster) joinLearner(ctx context.Context, t testing.TB, client *clientv3.Client) (*Member, uint64) {
	t.Helper()
	c.awaitVersion(t)
	found := ports.Free(t, "127.0.0.1", 3)
	name := "joined" + found[0]
	m := c.Release.newMember(t, name, "", "http://127.0.0.1:"+found[0], "http://127.0.0.1:"+found[1], "127.0.0.1:"+found[2])
	added, err := client.MemberAddAsLearner(ctx, []string{m.PeerURL})
	if err != nil {
		t.Fatal(err)
	}
	var initial []string
	for _, known := range added.Members {
		if known.ID == added.Member.ID {
			known.Name = name
		}
		initial = append(initial, known.Name+"="+known.PeerURLs[0])
	}
	m.args = append(m.args, "--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "existing")
	m.Start(t)
	return m, added.Member.ID
}

// awaitVersion waits until each member knows the cluster's version. A member of etcd 3.5 that
// joins earlier exits at once.
func (c *Cluster) awaitVersion(t testing.TB) {
	t.Helper()
	for _, m := range c.Members {
		Await(t, "await the version of the cluster at "+m.URL, func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.URL+"/version", nil)
			if err != nil {
				return err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			var version struct {
				Cluster string `json:"etcdcluster"`
			}
			if err := json.NewDecoder(resp.Body).Decode(&version); err != nil {
				return err
			}
			if strings.HasPrefix(version.Cluster, "not") {
				return errors.New(version.Cluster)
			}
			return nil
		})
	}
}

// Become restarts the members one by one as another release.
func (c *Cluster) Become(t testing.TB, r Release) {
	t.Helper()
	for _, m := range slices.Clone(c.Members) {
		m.Kill(t)
		m.program = filepath.Join(r.dir, "etcd")
		m.Start(t)
		c.WaitServing(t)
	}
	c.Release = r
}
