// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/internal/plugin/plugintest"
)

// echo returns the address of a server that sends back what it gets, in capitals.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 64)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte(strings.ToUpper(string(buffer[:n]))))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func open(t *testing.T, server *plugintest.APIServer) *Tunnel {
	t.Helper()
	kube, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	tunnel := New(server.Config(), kube.CoreV1().RESTClient(), "default")
	t.Cleanup(tunnel.Close)
	return tunnel
}

func ask(t *testing.T, conn net.Conn, text string) string {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func dial(t *testing.T, tunnel *Tunnel, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := tunnel.Dial(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestConnectionsToAPodShareOneRequest(t *testing.T) {
	server := (&plugintest.APIServer{Ports: map[string]string{"a:2379": echo(t), "a:2381": echo(t)}}).Start(t)
	tunnel := open(t, server)
	first, second := dial(t, tunnel, "a:2379"), dial(t, tunnel, "a:2381")
	if got := ask(t, first, "one"); got != "ONE" {
		t.Errorf("the first connection answers %q", got)
	}
	if got := ask(t, second, "two"); got != "TWO" {
		t.Errorf("the second connection answers %q", got)
	}
	first.Close()
	if got := ask(t, second, "three"); got != "THREE" {
		t.Errorf("after the first is closed, the second answers %q", got)
	}
	if n := server.Forwards(); n != 1 {
		t.Errorf("the API server got %d requests, want 1", n)
	}
}

func TestAPortWithoutAListenerIsNamed(t *testing.T) {
	tunnel := open(t, (&plugintest.APIServer{}).Start(t))
	conn := dial(t, tunnel, "a:2379")
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, err := conn.Read(make([]byte, 1))
	if err == nil || errors.Is(err, ErrNoConnection) || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "2379") {
		t.Errorf("the error is %v", err)
	}
}

func TestARefusalOfTheAPIServerIsForbidden(t *testing.T) {
	tunnel := open(t, (&plugintest.APIServer{Forbidden: true}).Start(t))
	if _, err := tunnel.Dial(t.Context(), "a:2379"); !apierrors.IsForbidden(err) || !errors.Is(err, ErrNoConnection) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnAPIServerThatDoesNotAnswerSaysNothingOfThePod(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The connections that it never accepts end with it, and the tunnel with them.
	t.Cleanup(func() { silent.Close() })
	config := &rest.Config{Host: "http://" + silent.Addr().String()}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tunnel := New(config, kube.CoreV1().RESTClient(), "default")
	t.Cleanup(tunnel.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := tunnel.Dial(ctx, "a:2379"); !errors.Is(err, ErrNoConnection) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// A connection that once hung must not be the one of all later calls.
func TestACallAfterOneThatHungConnectsAnew(t *testing.T) {
	for name, server := range map[string]*plugintest.APIServer{
		"no answer to the request": {Silent: 1},
		"no answer to a stream":    {Deaf: 1},
	} {
		t.Run(name, func(t *testing.T) {
			server.Ports = map[string]string{"a:2379": echo(t)}
			// The call ends when it hangs. A deadline might end it before: then the next call hangs.
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server.Hangs = cancel
			tunnel := open(t, server.Start(t))
			if _, err := tunnel.Dial(ctx, "a:2379"); !errors.Is(err, context.Canceled) {
				t.Fatalf("the first call ends with %v", err)
			}
			if got := ask(t, dial(t, tunnel, "a:2379"), "two"); got != "TWO" {
				t.Errorf("the second call is answered %q", got)
			}
		})
	}
}

// A stream waits for its answer for half a minute, also on a connection that has ended.
func TestACallEndsWithItsConnection(t *testing.T) {
	server := &plugintest.APIServer{Ports: map[string]string{"a:2379": echo(t)}, Deaf: 1}
	server.Hangs = func() { go server.Disconnect() }
	tunnel := open(t, server.Start(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := tunnel.Dial(ctx, "a:2379"); !errors.Is(err, errEnded) {
		t.Fatalf("the first call ends with %v", err)
	}
	if got := ask(t, dial(t, tunnel, "a:2379"), "two"); got != "TWO" {
		t.Errorf("the second call is answered %q", got)
	}
}

func TestReadsHaveDeadlines(t *testing.T) {
	server := (&plugintest.APIServer{Ports: map[string]string{"a:2379": echo(t)}}).Start(t)
	conn := dial(t, open(t, server), "a:2379")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("the error is %v", err)
	}
}

func TestTheTunnelConnectsAgain(t *testing.T) {
	server := (&plugintest.APIServer{Ports: map[string]string{"a:2379": echo(t)}}).Start(t)
	tunnel := open(t, server)
	conn := dial(t, tunnel, "a:2379")
	ask(t, conn, "one")
	server.Disconnect()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection survives without the API server")
	}
	// The tunnel may not have noticed: then a call fails, and the next one does not.
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := tunnel.Dial(t.Context(), "a:2379")
		if err == nil {
			if got := ask(t, conn, "two"); got != "TWO" {
				t.Errorf("it answers %q", got)
			}
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAClosedTunnelRefuses(t *testing.T) {
	tunnel := open(t, (&plugintest.APIServer{}).Start(t))
	tunnel.Close()
	if _, err := tunnel.Dial(t.Context(), "a:2379"); !errors.Is(err, errClosed) {
		t.Errorf("the error is %v", err)
	}
}
