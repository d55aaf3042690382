// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

func TestFlags(t *testing.T) {
	got, err := Parse(strings.Fields("-data-dir=/var/etcd -listen=:2382"), &bytes.Buffer{})
	must(t, err)
	if want := (Server{DataDir: "/var/etcd", Listen: ":2382", Metrics: "127.0.0.1:2381"}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	got, err = Parse(strings.Fields("-data-dir=d -listen=[::1]:1 -metrics=a:2 -etcd-version=3.6.16 -cert=c -key=k -ca=a"), &bytes.Buffer{})
	must(t, err)
	if want := (Server{DataDir: "d", Listen: "[::1]:1", Metrics: "a:2", Version: "3.6.16", Cert: "c", Key: "k", CA: "a"}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	for args, want := range map[string]string{
		"-listen=:2382":            "-data-dir is missing",
		"-data-dir=d":              "-listen is missing",
		"-data-dir=d -listen=2382": `-listen "2382" is no address with a port`,
		"-data-dir=d -listen=:1 -metrics=127.0.0.1":        `-metrics "127.0.0.1" is no address with a port`,
		"-data-dir=d -listen=:1 -cert=c -key=k":            "belong together",
		"-data-dir=d -listen=:1 -ca=c":                     "belong together",
		"-data-dir=d -listen=:1 more":                      `unexpected argument "more"`,
		"-data-dir=d -listen=:1 -nonsense":                 "flag provided but not defined",
		"-data-dir=d -listen=:1 -cert=c -key=k -ca=a more": `unexpected argument "more"`,
	} {
		var out bytes.Buffer
		if _, err := Parse(strings.Fields(args), &out); err == nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v, and this output:\n%s", args, err, out.String())
		}
	}
	if _, err := Parse([]string{"-h"}, &bytes.Buffer{}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestAPortInUseDoesNotEndTheServer(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	server, log := newServer(newData(t).dir, closedPort)
	server.Listen = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Run(ctx)
	}()
	for !strings.Contains(log.String(), "address already in use") {
		select {
		case <-ended:
			t.Fatal("it ends")
		case <-time.After(10 * time.Millisecond):
		}
	}
	must(t, l.Close())
	if _, err := connect(t, etcd.Endpoint{URL: "http://" + server.Listen}, etcd.Credentials{}).Status(waited(t, log)); err != nil {
		t.Errorf("once the port is free: %v", err)
	}
	cancel()
	<-ended
}

// waited returns a context once the server listens.
func waited(t *testing.T, log *logged) context.Context {
	t.Helper()
	ctx := soon(t)
	for !strings.Contains(log.String(), "serving the data") {
		select {
		case <-ctx.Done():
			t.Fatal("the server does not listen")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return ctx
}

func TestTheEndCutsSnapshots(t *testing.T) {
	d := newData(t)
	d.fill(t, 8) // more than what connections hold
	server, _ := newServer(d.dir, closedPort)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	stream, err := connect(t, etcd.Endpoint{URL: "http://" + l.Addr().String()}, etcd.Credentials{}).Snapshot(soon(t))
	must(t, err)
	cancel()
	if err := <-served; err != nil {
		t.Errorf("the server ends with %v", err)
	}
	for {
		if _, err := stream.Next(); err != nil {
			break
		}
	}
}
