// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcd-operator/etcd-operator/internal/seed"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/manifest"
)

// seeding is the work of the two init containers that begin with a backup. It is as durable as
// the pod's emptyDir on disk.
type seeding struct {
	content []byte // the whole backup; nil: not fetched yet
	done    bool   // the data directory was made in this pod
	pulling bool
	pause   time.Duration
	failure error // of the last attempt to fetch
}

// current returns the number of the init container that runs.
func (r *podRun) current() int {
	for i, c := range r.pod.Spec.InitContainers {
		if r.seeding != nil && (c.Name == manifest.FetchContainer && r.seeding.content == nil || c.Name == manifest.RestoreContainer && !r.seeding.done) && !r.disk().hasData() {
			return i
		}
	}
	return len(r.pod.Spec.InitContainers) - 1
}

// initialize runs the init containers. It returns the name of the one that runs.
func (r *podRun) initialize() (container string, ok bool, err error) {
	containers := r.pod.Spec.InitContainers
	if r.w.backups != nil && containers[0].Name == manifest.FetchContainer {
		if r.seeding == nil {
			r.seeding = &seeding{pause: time.Second}
		}
		s := r.seeding
		switch {
		case r.disk().hasData():
		case r.member != "":
			return containers[0].Name, false, fmt.Errorf("member %s has served from this pod before, and it holds no data of it now", r.member)
		case s.done:
			return containers[0].Name, false, errors.New("the backup was restored in this pod before, and it holds no data of etcd now")
		case s.content == nil:
			r.fetch(containers[0])
			return containers[0].Name, false, nil
		case time.Since(r.began) < 500*time.Millisecond:
			return containers[1].Name, false, nil
		default:
			if err := r.restore(containers[1]); err != nil {
				return containers[1].Name, false, err
			}
			s.done, r.began = true, time.Now()
			return containers[1].Name, false, nil
		}
	}
	ok, err = r.checkDNS()
	return "check-dns", ok, err
}

// fetch makes an attempt to fetch the backup, unless one is under way.
func (r *podRun) fetch(c corev1.Container) {
	w, s := r.w, r.seeding
	if s.pulling {
		return
	}
	f, err := seed.ParseFetch(c.Command[2:], io.Discard)
	if err != nil {
		panic(err)
	}
	s.pulling = true
	ended := func(content []byte, err error) {
		s.pulling, s.failure = false, err
		if err == nil && (int64(len(content)) != f.Size || digestOf(content) != f.SHA256) {
			err = errors.New("what is served is not the backup that was chosen")
		}
		if err != nil {
			w.note("fetch " + r.name + ": " + err.Error())
			r.next = time.Now().Add(s.pause)
			s.pause = min(2*s.pause, 15*time.Second)
			return
		}
		w.narrate(r.name, "has fetched the backup")
		s.content, r.began = content, time.Now()
	}
	server := w.backups.server()
	if server == nil || server.frozen || !w.reachable(r.node.name, server.place) || !w.reachable(server.place, r.node.name) {
		ended(nil, errors.New("connection refused"))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	puller := &operator{w: w, name: r.name + " fetch", place: r.node.name, dead: make(chan struct{}), cancel: cancel}
	w.backups.pullers = append(w.backups.pullers, puller)
	token, dial := w.backups.token(r.pod), w.backups.listeners[server].dial
	go func() {
		defer cancel()
		content, err := download(ctx, dial, f.URL, token)
		c := &call{actor: puller, key: puller.name}
		c.route = func() {
			ended(content, err)
			w.answer(c, true)
		}
		_, _ = w.ask(context.WithoutCancel(ctx), c)
	}()
	w.stirred = true
}

// token returns the token that the pod mounts.
func (b *backups) token(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		if s := b.w.api.shelves["secrets"].objects[storedKey(namespace, v.Secret.SecretName)]; s != nil {
			return string(s.obj.(*corev1.Secret).Data[api.SeedBackupTokenKey])
		}
	}
	return ""
}

func download(ctx context.Context, dial func(context.Context) (net.Conn, error), url, token string) ([]byte, error) {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, content)
	}
	return content, err
}

// restore makes the data directory, as etcdutl does.
func (r *podRun) restore(c corev1.Container) error {
	w, d := r.w, r.disk()
	p, err := seed.ParseRestore(c.Command[2:], io.Discard)
	if err != nil {
		panic(err)
	}
	state, err := decodeState(r.seeding.content)
	if err != nil {
		return err
	}
	id := memberID(p.PeerURL, p.ClusterToken, nil)
	clusterID := clusterIDOf([]uint64{id})
	m := newMachine()
	m.data, m.revision = maps.Clone(state.Data), state.Revision+p.BumpRevision
	m.members[id] = memberInfo{id: id, url: p.PeerURL}
	log := raft.NewMemoryStorage()
	must(log.ApplySnapshot(&pb.Snapshot{
		Data:     w.pay(payload{state: m.clone()}),
		Metadata: &pb.SnapshotMetadata{ConfState: &pb.ConfState{Voters: []uint64{id}}, Index: new(uint64(1)), Term: new(uint64(1))},
	}))
	must(log.SetHardState(&pb.HardState{Term: new(uint64(1)), Commit: new(uint64(1))}))
	*d = disk{name: p.Name, member: id, clusterID: clusterID, log: log, started: d.started, hung: d.hung}
	w.backups.begins(clusterID, m, state)
	w.narrate(r.name, "restores revision %d of cluster %x as cluster %x", state.Revision, state.ClusterID, clusterID)
	return nil
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	close  sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4zero, Port: 19999} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.closed:
	case <-ctx.Done():
	}
	return nil, errRefused
}
