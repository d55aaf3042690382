// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/protobuf/proto"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

const (
	clusterID = 0xc1
	memberID  = 0x69b38ac7138de88d
)

// data is a data directory whose database is open, as by etcd.
type data struct {
	dir string
	db  *bbolt.DB
}

func newData(t *testing.T) *data {
	t.Helper()
	d := &data{dir: t.TempDir()}
	for _, name := range []string{"snap", "wal"} {
		must(t, os.MkdirAll(filepath.Join(d.dir, "member", name), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(d.dir, "member", "wal", "0000000000000000-0000000000000000.wal"), logOf(t, 0, clusterID, memberID), 0o600))
	var err error
	d.db, err = bbolt.Open(filepath.Join(d.dir, "member", "snap", "db"), 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, NoSync: true})
	must(t, err)
	t.Cleanup(func() { _ = d.db.Close() })
	d.put(t, "meta", map[string]string{"consistent_index": eight(90), "term": eight(7), "storageVersion": "3.6.0"})
	d.write(t, 10, 100)
	return d
}

// put writes values into a bucket, in one transaction.
func (d *data) put(t *testing.T, bucket string, values map[string]string) {
	t.Helper()
	must(t, d.db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte(bucket))
		if err != nil {
			return err
		}
		for key, value := range values {
			if err := b.Put([]byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// write makes a record of a revision.
func (d *data) write(t *testing.T, revision uint64, size int) {
	t.Helper()
	d.put(t, "key", map[string]string{eight(revision) + "_" + eight(0): strings.Repeat("v", size)})
}

// fill writes so many MiB.
func (d *data) fill(t *testing.T, mib int) {
	t.Helper()
	for i := range mib {
		d.write(t, uint64(i)+2, 1<<20)
	}
}

// enableAuth makes etcd ask for users: root with the password secret, reader with the same one and
// without the role, and a root without a password.
func (d *data) enableAuth(t *testing.T) {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	must(t, err)
	users := map[string]string{}
	for _, u := range []*authpb.User{
		{Name: []byte("root"), Password: hash, Roles: []string{"other", "root"}},
		{Name: []byte("reader"), Password: hash, Roles: []string{"reader"}},
		{Name: []byte("certified"), Password: hash, Roles: []string{"root"}, Options: &authpb.UserAddOptions{NoPassword: true}},
	} {
		text, err := proto.Marshal(u)
		must(t, err)
		users[string(u.Name)] = string(text)
	}
	d.put(t, "authUsers", users)
	d.put(t, "auth", map[string]string{"authEnabled": "\x01"})
}

// snapshot is what etcd would send, without the sha256.
func (d *data) snapshot(t *testing.T) []byte {
	t.Helper()
	var text bytes.Buffer
	must(t, d.db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&text)
		return err
	}))
	return text.Bytes()
}

func eight(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// logOf is the beginning of a file of the write-ahead log, as etcd's encoder writes it.
func logOf(t *testing.T, previous uint32, cluster, member uint64) []byte {
	t.Helper()
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: &member, ClusterID: &cluster})
	must(t, err)
	text := frame(4, previous, nil)
	text = append(text, frame(1, crc32.Update(previous, raftlog.Castagnoli, metadata), metadata)...)
	return append(text, make([]byte, 4096)...) // etcd allocates ahead
}

func frame(kind uint64, checksum uint32, content []byte) []byte {
	return raftlog.Record{Kind: kind, Checksum: checksum, Data: content}.Frame()
}

// metricsServer serves the metrics of a member.
type metricsServer struct {
	mu                sync.Mutex
	member            uint64
	revision, applied int
	leader            bool
	address           string
}

// newMetrics starts a server that agrees with newData, and has applied more.
func newMetrics(t *testing.T) *metricsServer {
	t.Helper()
	m := &metricsServer{member: memberID, revision: 10, applied: 95}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		leads := 0
		if m.leader {
			leads = 1
		}
		fmt.Fprintf(w, "etcd_server_id{server_id=\"%x\"} 1\netcd_server_version{server_version=\"3.6.16\"} 1\netcd_server_has_leader %d\netcd_server_is_learner 0\n", m.member, leads)
		fmt.Fprintf(w, "etcd_debugging_mvcc_current_revision %d\netcd_server_proposals_applied_total %d\n", m.revision, m.applied)
	}))
	t.Cleanup(server.Close)
	m.address = strings.TrimPrefix(server.URL, "http://")
	return m
}

func (m *metricsServer) set(do func(*metricsServer)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m)
}

// closedPort is an address on which nobody listens.
const closedPort = "127.0.0.1:1"

// logged is what a server has logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newServer(dir, metrics string) (*Server, *logged) {
	log := &logged{}
	logger := logrus.New()
	logger.SetOutput(log)
	return &Server{DataDir: dir, Metrics: metrics, Log: logrus.NewEntry(logger)}, log
}

// start serves until the test ends, and returns the endpoint.
func start(t *testing.T, s *Server) etcd.Endpoint {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	scheme := "http://"
	if s.Cert != "" {
		scheme = "https://"
	}
	return etcd.Endpoint{URL: scheme + l.Addr().String()}
}

// connect returns a connection of etcd's client, as the operators make it.
func connect(t *testing.T, ep etcd.Endpoint, user etcd.Credentials) *etcd.Conn {
	t.Helper()
	client := etcd.NewClient(nil)
	client.SetCredentials(user)
	t.Cleanup(client.Close)
	conn, err := client.Conn(ep)
	must(t, err)
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
