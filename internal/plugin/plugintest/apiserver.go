// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest plays an API server for tests of the plugin: the two requests that
// fake clients can't answer, port-forward and exec. Nothing but tests may import it.
package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// APIServer connects to pods. Set what it knows before it is asked.
type APIServer struct {
	// Ports are the addresses behind ports of pods, by pod:port.
	Ports map[string]string
	// Forbidden refuses all requests.
	Forbidden bool
	// Silent is how many of the first requests for port-forward get no answer. Deaf is how
	// many of the first connections for port-forward answer to no stream.
	Silent, Deaf int
	// Hangs, if not nil, is called when the client begins to wait for one of these answers.
	Hangs func()
	// Exec runs a command in a pod, and returns its exit code.
	Exec func(pod string, command []string, stdin io.Reader, stdout, stderr io.Writer) int

	t      testing.TB
	server *httptest.Server

	ended chan struct{}

	mu          sync.Mutex
	connections []httpstream.Connection
	forwards    int
}

// Start serves until the test ends.
func (s *APIServer) Start(t testing.TB) *APIServer {
	t.Helper()
	s.t, s.ended = t, make(chan struct{})
	s.server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		close(s.ended)
		s.Disconnect()
		s.server.Close()
	})
	return s
}

// Config is a client's configuration for the server.
func (s *APIServer) Config() *rest.Config { return &rest.Config{Host: s.server.URL} }

// Disconnect ends all connections to pods, as a restart of the API server does.
func (s *APIServer) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connections {
		c.Close()
	}
	s.connections = nil
}

// Forwards counts the connections for port-forward.
func (s *APIServer) Forwards() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forwards
}

func (s *APIServer) serve(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) != 7 || parts[4] != "pods" {
		http.NotFound(w, r)
		return
	}
	pod, what := parts[5], parts[6]
	switch {
	case s.Forbidden:
		refuse(w, pod, what)
	case !strings.HasPrefix(r.Header.Get("Upgrade"), "SPDY"):
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
	case what == "portforward" && s.next(&s.Silent):
		s.hang()
	case what == "portforward":
		s.forward(w, r, pod)
	case what == "exec":
		s.exec(w, r, pod)
	default:
		http.NotFound(w, r)
	}
}

func refuse(w http.ResponseWriter, pod, what string) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "pods/" + what}, pod, fmt.Errorf("the user may not"))
	refusal.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(refusal.ErrStatus)
}

// hang waits until the test ends.
func (s *APIServer) hang() {
	if s.Hangs != nil {
		s.Hangs()
	}
	<-s.ended
}

// next counts down, and reports whether anything was left.
func (s *APIServer) next(left *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	*left--
	return *left >= 0
}

// upgrade makes a connection of a request. Its streams come over the channel.
func (s *APIServer) upgrade(w http.ResponseWriter, r *http.Request) (httpstream.Connection, <-chan httpstream.Stream) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io", "v4.channel.k8s.io"}); err != nil {
		return nil, nil
	}
	streams := make(chan httpstream.Stream, 16)
	deaf := strings.HasSuffix(r.URL.Path, "/portforward") && s.next(&s.Deaf)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		if deaf {
			s.hang()
		}
		streams <- stream
		return nil
	})
	if conn != nil {
		s.mu.Lock()
		s.connections = append(s.connections, conn)
		s.mu.Unlock()
	}
	return conn, streams
}

func (s *APIServer) forward(w http.ResponseWriter, r *http.Request, pod string) {
	conn, streams := s.upgrade(w, r)
	if conn == nil {
		return
	}
	defer conn.Close()
	s.mu.Lock()
	s.forwards++
	s.mu.Unlock()
	refusals := map[string]httpstream.Stream{}
	for {
		select {
		case <-conn.CloseChan():
			return
		case stream := <-streams:
			id := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				refusals[id] = stream
				continue
			}
			go s.connect(r.Context(), net.JoinHostPort(pod, stream.Headers().Get(corev1.PortHeader)), stream, refusals[id])
		}
	}
}

// connect does what the kubelet does.
func (s *APIServer) connect(ctx context.Context, address string, data, refusals httpstream.Stream) {
	defer refusals.Close()
	defer data.Close()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Ports[address])
	if err != nil {
		fmt.Fprintf(refusals, "error forwarding to %s: connection refused", address)
		return
	}
	defer to.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(data, to)
	}()
	_, _ = io.Copy(to, data)
	to.Close()
	<-done
}

func (s *APIServer) exec(w http.ResponseWriter, r *http.Request, pod string) {
	conn, streams := s.upgrade(w, r)
	if conn == nil {
		return
	}
	defer conn.Close()
	query := r.URL.Query()
	wanted := 1
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		if query.Get(name) == "true" {
			wanted++
		}
	}
	got := map[string]httpstream.Stream{}
	for len(got) < wanted {
		select {
		case stream := <-streams:
			got[stream.Headers().Get(corev1.StreamType)] = stream
		case <-conn.CloseChan():
			return
		}
	}
	var stdin io.Reader = strings.NewReader("")
	if in := got[corev1.StreamTypeStdin]; in != nil {
		stdin = in
	}
	code := s.Exec(pod, query["command"], stdin, got[corev1.StreamTypeStdout], got[corev1.StreamTypeStderr])
	status := metav1.Status{Status: metav1.StatusSuccess}
	if code != 0 {
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "command terminated",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: fmt.Sprint(code)}}},
		}
	}
	_ = json.NewEncoder(got[corev1.StreamTypeError]).Encode(status)
	for _, stream := range got {
		stream.Close()
	}
	<-conn.CloseChan()
}
