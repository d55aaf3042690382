// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports finds ports for servers that tests start as processes of their own.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// The kernel hands out ports above these by itself (ip_local_port_range), also to
// connections: one that a test was given there can be taken while its server is not
// yet, or not now, listening. Below 15000 are those of the local Kubernetes.
const (
	lowest  = 15000
	highest = 29999
)

// Free returns so many ports of an address on which nothing listens. They differ.
func Free(t testing.TB, ip string, n int) []string {
	t.Helper()
	var found []string
	for len(found) < n {
		port := strconv.Itoa(lowest + rand.IntN(highest-lowest+1))
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(fmt.Errorf("find a free port: %w", err))
		}
		defer listener.Close() // all are found before any is used, so that they differ
		found = append(found, port)
	}
	return found
}
