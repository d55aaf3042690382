//go:build bench

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// speakTime is how long a client may take to say what it speaks.
const speakTime = 5 * time.Second

// A door is the client port of a member that runs: gRPC and HTTP, as etcd's own.
type door struct {
	cluster  *standInCluster
	member   *standIn
	listener net.Listener

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
}

// open opens the door at an address.
func (s *standIns) open(ctx context.Context, ip string) (*door, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(ip, "2379"))
	if err != nil {
		return nil, fmt.Errorf("serve a member: %w; hack/bench -scale makes the addresses of %s local", err, podNetwork)
	}
	d := &door{listener: listener, conns: map[net.Conn]bool{}}
	s.serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the member has stopped
			}
			if d.admit(conn) {
				s.serving.Go(func() { s.welcome(conn, ip) })
			}
		}
	})
	return d, nil
}

// admit notes a connection, which ends with the member.
func (d *door) admit(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		conn.Close()
		return false
	}
	d.conns[conn] = true
	return true
}

func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.listener.Close()
	for conn := range d.conns {
		conn.Close()
	}
}

// welcome hands a connection with gRPC to the server, and answers a request of HTTP.
func (s *standIns) welcome(conn net.Conn, ip string) {
	first := make([]byte, 3)
	_ = conn.SetReadDeadline(time.Now().Add(speakTime)) // an error shows in the read
	if _, err := io.ReadFull(conn, first); err != nil {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	read := io.MultiReader(strings.NewReader(string(first)), conn)
	if string(first) == "PRI" { // the preface of HTTP/2
		s.dialed.hand(begunConn{conn, read})
		return
	}
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(read))
	if err != nil {
		return
	}
	text, code := s.page(request.URL.Path, ip)
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", code, http.StatusText(code), len(text), text)
}

// page is what a member answers by HTTP: the versions.
func (s *standIns) page(path, ip string) (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m := s.at(ip)
	if path != "/version" || m == nil {
		return "", http.StatusNotFound
	}
	lowest := m.version // all are of one minor
	for _, other := range c.members {
		if other.version != "" {
			lowest = min(lowest, other.version)
		}
	}
	return fmt.Sprintf(`{"etcdserver":%q,"etcdcluster":%q}`, m.version, lowest[:strings.LastIndexByte(lowest, '.')]+".0"), http.StatusOK
}

// begunConn is a connection from which somebody has read the beginning.
type begunConn struct {
	net.Conn
	read io.Reader
}

func (c begunConn) Read(b []byte) (int, error) { return c.read.Read(b) }

// handedOver is a listener whose connections come from other listeners.
type handedOver struct {
	conns chan net.Conn
	ended chan struct{}
	once  sync.Once
}

func newHandedOver() *handedOver {
	return &handedOver{conns: make(chan net.Conn), ended: make(chan struct{})}
}

func (h *handedOver) hand(conn net.Conn) {
	select {
	case h.conns <- conn:
	case <-h.ended:
		conn.Close()
	}
}

func (h *handedOver) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.ended:
		return nil, errors.New("no more connections")
	}
}

func (h *handedOver) Close() error {
	h.once.Do(func() { close(h.ended) })
	return nil
}

func (*handedOver) Addr() net.Addr { return &net.TCPAddr{} }
