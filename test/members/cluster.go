// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package members

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/etcd-operator/etcd-operator/test/environment"
	"github.com/etcd-operator/etcd-operator/test/ports"
	"github.com/etcd-operator/etcd-operator/test/process"
)

// startTime bounds the time until a cluster serves.
const startTime = time.Minute

// Options of a cluster.
type Options struct {
	// Size is how many members it has. Default: 1.
	Size int
	// TLS makes clients use TLS and certificates.
	TLS *TLS
	// Flags of all members, without those that form the cluster.
	Flags []string
	// Data is the data directory of a cluster of one, such as a restored one; default: empty
	// directories of the test.
	Data string
	// PeerURL is where a cluster of one listens for others; default: a free port.
	PeerURL string
}

// Cluster is a cluster that runs until the test ends.
type Cluster struct {
	Release Release
	Members []*Member
	tls     *TLS
}

// Member is one process.
type Member struct {
	// URL is for clients, PeerURL for the other members.
	URL, PeerURL string
	// Metrics is the host and the port of its metrics, which it serves as soon as it runs.
	Metrics string

	program string
	args    []string
	data    string
	log     *os.File
	running *exec.Cmd
	exited  chan struct{} // closed when running has exited
}

// Start starts a cluster and waits until it serves.
func (r Release) Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{Release: r, tls: o.TLS}
	size := max(o.Size, 1)
	scheme := "http"
	var security []string
	if o.TLS != nil {
		scheme, security = "https", o.TLS.serverFlags()
	}
	found := ports.Free(t, "127.0.0.1", 3*size)
	var initial, peers []string
	for i := range size {
		peers = append(peers, cmp.Or(o.PeerURL, "http://127.0.0.1:"+found[3*i+1]))
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	for i := range size {
		m := r.newMember(t, fmt.Sprintf("m%d", i), o.Data, scheme+"://127.0.0.1:"+found[3*i], peers[i], "127.0.0.1:"+found[3*i+2])
		m.args = append(append(append(m.args, "--initial-cluster", strings.Join(initial, ",")), security...), o.Flags...)
		c.Members = append(c.Members, m)
		m.Start(t)
	}
	c.WaitServing(t)
	return c
}

// newMember returns a member without the flags that name the others. data "" means a directory
// of the test.
func (r Release) newMember(t testing.TB, name, data, client, peer, metrics string) *Member {
	t.Helper()
	if data == "" {
		data = filepath.Join(t.TempDir(), "data")
	}
	m := &Member{URL: client, PeerURL: peer, Metrics: metrics, program: filepath.Join(r.dir, "etcd"), data: data, args: []string{
		"--name", name, "--data-dir", data,
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--listen-metrics-urls", "http://" + metrics,
		"--logger", "zap", "--log-level", "warn",
		// The cheapest passwords: the race detector makes a comparison in the process of the test twelve times slower.
		"--bcrypt-cost", "4",
	}}
	var err error
	if m.log, err = os.Create(filepath.Join(t.TempDir(), "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Kill(t)
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", m.URL, m.tail())
		}
		m.log.Close()
	})
	return m
}

// WaitServing waits until all running members answer with a quorum.
func (c *Cluster) WaitServing(t testing.TB) {
	t.Helper()
	for _, m := range c.Members {
		if m.running == nil {
			continue
		}
		client := c.Client(t, m)
		ctx, cancel := context.WithTimeout(t.Context(), startTime)
		defer cancel()
		for {
			attempt, end := context.WithTimeout(ctx, 5*time.Second)
			_, err := client.MemberList(attempt)
			if err == nil {
				_, err = client.Get(attempt, "\x00")
			}
			end()
			if err == nil {
				break
			}
			select {
			case <-m.exited:
				t.Fatalf("%s has exited:\n%s", m.URL, m.tail())
			case <-ctx.Done():
				t.Fatalf("%s does not serve: %v", m.URL, err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// Client returns a client of some members, or of all, with the rights of root.
func (c *Cluster) Client(t testing.TB, to ...*Member) *clientv3.Client {
	t.Helper()
	if len(to) == 0 {
		to = c.Members
	}
	var urls []string
	for _, m := range to {
		urls = append(urls, m.URL)
	}
	var config *tls.Config
	if c.tls != nil {
		config = c.tls.ClientConfig(t, "root")
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: urls, TLS: config, Logger: zap.NewNop(), MaxCallSendMsgSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Leader returns the member that leads, by the word of all running ones, and the others. It
// waits for the end of an election.
func (c *Cluster) Leader(t testing.TB) (leader *Member, followers []*Member) {
	t.Helper()
	clients := map[*Member]*clientv3.Client{}
	for _, m := range c.Members {
		if m.running != nil {
			clients[m] = c.Client(t, m)
		}
	}
	Await(t, "a member leads", func(ctx context.Context) error {
		leader, followers = nil, nil
		leads := map[uint64]bool{}
		for _, m := range c.Members {
			if m.running == nil {
				continue
			}
			status, err := clients[m].Status(ctx, m.URL)
			if err != nil {
				return err
			}
			if leads[status.Leader] = true; status.Leader == status.Header.MemberId {
				leader = m
			} else {
				followers = append(followers, m)
			}
		}
		if leader == nil || len(leads) > 1 {
			return fmt.Errorf("they say that these lead: %v", leads)
		}
		return nil
	})
	return leader, followers
}

// Commit has a member write to the file of its database what it has applied. It does so before it sends a snapshot.
func Commit(t testing.TB, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	snapshot, err := client.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	if _, err := io.ReadFull(snapshot, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// Await retries a function until it succeeds, like etcd's clients: during an election, or on a
// busy machine, members refuse requests that succeed a moment later.
func Await(t testing.TB, what string, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	for {
		attempt, end := context.WithTimeout(ctx, callTime/4)
		err := do(attempt)
		end()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, callTime, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Start starts the process unless it runs.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), m.program, m.args...) // ended by a cleanup
	cmd.Env = environment.Bare()
	cmd.Stdout, cmd.Stderr = m.log, m.log
	// The process must end with the test, however the test ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its log shows how it ended
	}()
	m.running, m.exited = cmd, exited
}

// Kill ends the process at once, as a crash does, and waits for its end.
func (m *Member) Kill(t testing.TB) {
	t.Helper()
	if m.running == nil {
		return
	}
	m.signal(t, syscall.SIGKILL)
	<-m.exited
	m.running = nil
}

// Pid is the ID of the running process.
func (m *Member) Pid() int { return m.running.Process.Pid }

// Dir is the data directory of a member.
func (m *Member) Dir() string { return m.data }

// Destroy ends the process at once, and deletes its data.
func (m *Member) Destroy(t testing.TB) {
	t.Helper()
	m.Kill(t)
	if err := os.RemoveAll(m.data); err != nil {
		t.Fatal(err)
	}
}

// Log is what the process has logged so far, in all its lives.
func (m *Member) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Database is the file with the keys of a member.
func (m *Member) Database() string { return filepath.Join(m.data, "member", "snap", "db") }

// Freeze stops the process: the kernel accepts connections, and nobody answers until Thaw.
func (m *Member) Freeze(t testing.TB) {
	t.Helper()
	if err := process.Stop(m.running.Process.Pid); err != nil {
		t.Errorf("freeze %s: %v", m.URL, err)
	}
}

// Thaw continues a frozen process.
func (m *Member) Thaw(t testing.TB) { m.signal(t, syscall.SIGCONT) }

func (m *Member) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := m.running.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal %v to %s: %v", signal, m.URL, err)
	}
}

func (m *Member) tail() string {
	text, err := os.ReadFile(m.log.Name())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
