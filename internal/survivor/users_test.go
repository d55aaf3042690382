// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
	"github.com/etcd-operator/etcd-operator/pkg/snapshot"
)

// first returns the error at the beginning of a snapshot.
func first(ctx context.Context, conn *etcd.Conn) error {
	_, err := conn.Snapshot(ctx)
	return err
}

func TestWithAuthenticationASnapshotNeedsRoot(t *testing.T) {
	d := newData(t)
	d.enableAuth(t)
	server, _ := newServer(d.dir, closedPort)
	ep := start(t, server)
	ctx := soon(t)

	nobody := connect(t, ep, etcd.Credentials{})
	if _, err := nobody.Status(ctx); !etcd.AsksForUser(err) {
		t.Errorf("a status for nobody: %v", err)
	}
	if err := first(ctx, nobody); !etcd.AsksForUser(err) {
		t.Errorf("a snapshot for nobody: %v", err)
	}
	reader := connect(t, ep, etcd.Credentials{Username: "reader", Password: "secret"})
	if _, err := reader.Status(ctx); err != nil {
		t.Errorf("a status for a user without the role: %v", err)
	}
	if err := first(ctx, reader); !etcd.LacksRole(err) {
		t.Errorf("a snapshot for a user without the role: %v", err)
	}
	for name, user := range map[string]etcd.Credentials{
		"a wrong password":        {Username: "root", Password: "wrong"},
		"no password":             {Username: "root"},
		"an unknown user":         {Username: "unknown", Password: "secret"},
		"a user without password": {Username: "certified", Password: "secret"},
	} {
		if err := first(ctx, connect(t, ep, user)); !etcd.RefusesUser(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := take(t, snapshot.Source{Endpoints: []etcd.Endpoint{ep}, User: etcd.Credentials{Username: "root", Password: "secret"}})
	if s.ClusterID != clusterID {
		t.Errorf("%+v", s)
	}
}

func TestWithoutAuthenticationEverybodyIsServed(t *testing.T) {
	for name, prepare := range map[string]func(*data, *testing.T){
		"never enabled": func(*data, *testing.T) {},
		"disabled": func(d *data, t *testing.T) {
			d.enableAuth(t)
			d.put(t, "auth", map[string]string{"authEnabled": "\x00"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newData(t)
			prepare(d, t)
			server, _ := newServer(d.dir, closedPort)
			ep := start(t, server)
			take(t, snapshot.Source{Endpoints: []etcd.Endpoint{ep}})
			// The user may be one that etcd has had before.
			take(t, snapshot.Source{Endpoints: []etcd.Endpoint{ep}, User: etcd.Credentials{Username: "root", Password: "any"}})
		})
	}
}

func TestATokenIsOfOneServerAndEnds(t *testing.T) {
	d := newData(t)
	d.enableAuth(t)
	server, _ := newServer(d.dir, closedPort)
	cc, err := grpc.NewClient(start(t, server).URL[len("http://"):], grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer cc.Close()
	status := func(token string) error {
		_, err := etcdserverpb.NewMaintenanceClient(cc).Status(metadata.AppendToOutgoingContext(soon(t), rpctypes.TokenFieldNameGRPC, token), &etcdserverpb.StatusRequest{})
		return rpctypes.Error(err)
	}
	resp, err := etcdserverpb.NewAuthClient(cc).Authenticate(soon(t), &etcdserverpb.AuthenticateRequest{Name: "root", Password: "secret"})
	must(t, err)
	must(t, status(resp.Token))
	if err := status("another"); !errors.Is(err, rpctypes.ErrInvalidAuthToken) {
		t.Errorf("another token: %v", err)
	}

	held := newTokens()
	old, fresh := held.issue("old"), held.issue("fresh")
	held.held[old].used = time.Now().Add(-tokenTime - time.Second)
	if name, known := held.user(old); known {
		t.Errorf("a token without use is of %q", name)
	}
	if name, known := held.user(fresh); name != "fresh" || !known {
		t.Errorf("the other is of %q, %t", name, known)
	}
	if held.issue("other"); len(held.held) != 2 {
		t.Errorf("%d tokens are held", len(held.held))
	}
}

func TestOnePasswordIsComparedAtATime(t *testing.T) {
	d := newData(t)
	d.enableAuth(t)
	server, _ := newServer(d.dir, closedPort)
	svc := &service{Server: server, metrics: &watch{address: closedPort}, tokens: newTokens(), turn: make(chan struct{}, 1)}
	svc.turn <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	request := &etcdserverpb.AuthenticateRequest{Name: "root", Password: "secret"}
	if _, err := (authentication{service: svc}).Authenticate(ctx, request); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another one is compared: %v", err)
	}
	<-svc.turn
	for range 2 { // each gives the turn back
		_, err := authentication{service: svc}.Authenticate(soon(t), request)
		must(t, err)
	}
}
