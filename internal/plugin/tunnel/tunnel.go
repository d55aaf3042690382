// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel connects to ports of pods through the API server, as `kubectl
// port-forward` does. It opens no port on the user's machine: others there could
// connect to it.
package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/etcd-operator/etcd-operator/internal/plugin/wire"
)

// ErrNoConnection matches every error of Dial that says nothing about the pod: the API
// server refused to connect to it, or could not.
var ErrNoConnection = errors.New("the API server has not connected to the pod")

// unconnected is an error that ErrNoConnection matches.
type unconnected struct{ error }

func (u unconnected) Unwrap() []error { return []error{u.error, ErrNoConnection} }

// Tunnel connects to the pods of a namespace. It keeps one connection to the API
// server for each pod. Its calls may run concurrently.
type Tunnel struct {
	dialer func(ctx context.Context, pod string) (httpstream.Dialer, error)

	mu     sync.Mutex
	closed bool
	pods   map[string]*carrier
}

// carrier is the connection to the API server that carries all connections to a pod.
type carrier struct {
	cancel  context.CancelFunc // of the attempt to connect
	ready   chan struct{}      // closed when conn or err is set
	conn    httpstream.Connection
	err     error
	mu      sync.Mutex
	streams int
}

// New returns a tunnel without connections. The client is that of the core API.
func New(config *rest.Config, core rest.Interface, namespace string) *Tunnel {
	return &Tunnel{pods: map[string]*carrier{}, dialer: func(ctx context.Context, pod string) (httpstream.Dialer, error) {
		return newDialer(within(ctx, config), core.Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL())
	}}
}

// within returns a configuration whose requests end with the context: the dialers of
// client-go take none.
func within(ctx context.Context, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return next.RoundTrip(r.WithContext(ctx)) })
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newDialer tries WebSockets, and SPDY where the API server or a proxy refuses them.
func newDialer(config *rest.Config, to *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	websocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(to, config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(websocket, old, wire.RefusesWebSockets), nil
}

// Dial connects to an address of the form pod:port. If the context ends before, the next
// call makes a connection to the API server of its own: one that hangs may hang forever.
func (t *Tunnel) Dial(ctx context.Context, address string) (net.Conn, error) {
	pod, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address of a pod: %w", err)
	}
	c, err := t.carrier(ctx, pod)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ready:
	case <-ctx.Done():
		t.drop(pod, c)
		return nil, unconnected{fmt.Errorf("port-forward to the pod %s: %w", pod, ctx.Err())}
	}
	if c.err != nil {
		return nil, c.err
	}
	type result struct {
		conn net.Conn
		err  error
	}
	opened := make(chan result, 1)
	go func() {
		conn, err := c.open(port)
		opened <- result{conn, err}
	}()
	select {
	case r := <-opened:
		if r.err != nil {
			// What carries no stream any more is of no use to later calls.
			t.drop(pod, c)
			return nil, fmt.Errorf("connect to port %s of the pod %s: %w", port, pod, r.err)
		}
		return r.conn, nil
	case <-c.conn.CloseChan(): // a stream waits half a minute for its answer, even so
		err = errEnded
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.drop(pod, c)
	go func() {
		if r := <-opened; r.err == nil {
			r.conn.Close()
		}
	}()
	return nil, fmt.Errorf("connect to port %s of the pod %s: %w", port, pod, err)
}

var (
	errClosed = errors.New("the tunnel is closed")
	errEnded  = errors.New("the connection to the API server has ended")
)

// carrier returns the pod's carrier, and starts it where there is none.
func (t *Tunnel) carrier(ctx context.Context, pod string) (*carrier, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	if c := t.pods[pod]; c != nil {
		return c, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // later calls use it too
	c := &carrier{cancel: cancel, ready: make(chan struct{})}
	t.pods[pod] = c
	go t.carry(ctx, pod, c)
	return c, nil
}

// carry connects a carrier, and forgets it when the connection ends.
func (t *Tunnel) carry(ctx context.Context, pod string, c *carrier) {
	c.conn, c.err = t.connect(ctx, pod)
	close(c.ready)
	t.mu.Lock()
	wanted := t.pods[pod] == c
	t.mu.Unlock()
	if c.err == nil && wanted {
		<-c.conn.CloseChan()
	}
	t.drop(pod, c)
}

func (t *Tunnel) connect(ctx context.Context, pod string) (httpstream.Connection, error) {
	dialer, err := t.dialer(ctx, pod)
	if err == nil {
		var conn httpstream.Connection
		if conn, _, err = dialer.Dial(portforward.PortForwardProtocolV1Name); err == nil {
			return conn, nil
		}
	}
	err = fmt.Errorf("port-forward to the pod %s: %w", pod, err)
	// client-go keeps no more of the API server's answer than its text.
	if strings.Contains(err.Error(), "is forbidden: ") {
		err = forbidden{err}
	}
	return nil, unconnected{err}
}

// forbidden is an error for which apierrors.IsForbidden is true.
type forbidden struct{ error }

// Status makes it one.
func (f forbidden) Status() metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: f.Error()}
}

// drop ends a carrier. The next call makes another.
func (t *Tunnel) drop(pod string, c *carrier) {
	t.mu.Lock()
	if t.pods[pod] == c {
		delete(t.pods, pod)
	}
	t.mu.Unlock()
	c.close()
}

func (c *carrier) close() {
	select {
	case <-c.ready:
		if c.err == nil {
			c.conn.Close()
		}
	default: // carry closes it: the tunnel does not know it any more
	}
	c.cancel()
}

// Close ends all connections.
func (t *Tunnel) Close() {
	t.mu.Lock()
	t.closed = true
	pods := t.pods
	t.pods = map[string]*carrier{}
	t.mu.Unlock()
	for _, c := range pods {
		c.close()
	}
}
