// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// conn is a connection to a port of a pod. A net.Pipe gives it the deadlines that
// streams do not have.
type conn struct {
	net.Conn

	mu      sync.Mutex
	refusal error
}

// open connects to a port. The kubelet reports on a stream of its own that nobody
// listens there: the first read then returns why.
func (c *carrier) open(port string) (net.Conn, error) {
	c.mu.Lock()
	c.streams++
	id := c.streams
	c.mu.Unlock()

	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(id))
	refusals, err := c.conn.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	refusals.Close() // nothing is written to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := c.conn.CreateStream(headers)
	if err != nil {
		c.conn.RemoveStreams(refusals)
		return nil, err
	}

	near, far := net.Pipe()
	opened := &conn{Conn: near}
	refused := make(chan struct{})
	go func() {
		defer close(refused)
		message, err := io.ReadAll(refusals)
		if text := strings.TrimSpace(string(message)); err == nil && text != "" {
			opened.refuse(fmt.Errorf("port %s: %s", port, text))
		}
	}()
	go func() {
		// The caller closes both directions at once.
		_, _ = io.Copy(data, far)
		data.Close()
		_ = data.Reset()
	}()
	go func() {
		_, _ = io.Copy(far, data)
		// The kubelet ends the stream of errors only when nothing is left to send.
		_ = data.Reset()
		<-refused
		far.Close()
		c.conn.RemoveStreams(data, refusals)
	}()
	return opened, nil
}

func (c *conn) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusal = err
}

// Read returns the kubelet's reason where it has ended the connection.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refusal != nil {
			return n, c.refusal
		}
	}
	return n, err
}
