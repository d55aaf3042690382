//go:build stores

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// While a store is slow, the client sends a ping every ten seconds. gRPC's default ends the
// connection after the third one.
func TestAClientMayPauseAndPing(t *testing.T) {
	t.Parallel()
	d := newData(t)
	d.fill(t, 8) // more than what connections hold
	server, _ := newServer(d.dir, closedPort)
	stream, err := connect(t, start(t, server), etcd.Credentials{}).Snapshot(soon(t))
	must(t, err)
	time.Sleep(50 * time.Second)
	for {
		_, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
	}
}
