// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"sync"
	"time"
)

// HangAPIServer lets the API server answer nobody until it is released. Connections to
// it stay open.
func (n *Namespace) HangAPIServer() (release func()) {
	n.t.Helper()
	n.expectRestarts()
	n.component(n.t.Context(), "stop", "apiserver")
	release = sync.OnceFunc(func() {
		n.t.Helper()
		ctx, cancel := later(n.t.Context(), time.Minute)
		defer cancel()
		n.component(ctx, "continue", "apiserver")
	})
	n.t.Cleanup(release)
	return release
}

// KillAPIServer kills the API server, which is started again.
func (n *Namespace) KillAPIServer() {
	n.t.Helper()
	n.expectRestarts()
	n.component(n.t.Context(), "kill", "apiserver")
}

// expectRestarts lets operators start anew as often as they do while the API server is
// down: each that loses its Lease ends, and nobody can ask meanwhile why one ended.
func (n *Namespace) expectRestarts() {
	const most = 5
	for _, crashes := range n.crashesOf() {
		crashes.Add(most)
	}
}

func (n *Namespace) component(ctx context.Context, verb, name string) {
	n.t.Helper()
	if _, err := n.hackKube(ctx, "component", verb, name); err != nil {
		n.t.Error(err)
		return
	}
	n.record.tell(name, verb)
}
