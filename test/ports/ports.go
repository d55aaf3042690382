// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ports finds free ports for servers that tests start as processes.
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

// The kernel assigns ports above these (ip_local_port_range), even to connections, so a test's
// port there may be taken while its server does not listen. Ports below 15000 belong to the
// local Kubernetes.
const (
	lowest  = 15000
	highest = 29999
)

// Free returns this number of different ports of an address on which nothing listens. Until the
// test ends, no other call returns them, in any process: a server that a test has killed finds its
// port free when it starts again, and nobody else answers there meanwhile.
func Free(t testing.TB, ip string, n int) []string {
	t.Helper()
	var found []string
	for len(found) < n {
		port := strconv.Itoa(lowest + rand.IntN(highest-lowest+1))
		reserved, err := reserve(t, port)
		if err != nil {
			t.Fatal(fmt.Errorf("find a free port: %w", err))
		}
		if !reserved {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(ip, port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(fmt.Errorf("find a free port: %w", err))
		}
		defer listener.Close() // all listen at once, so that the ports differ
		found = append(found, port)
	}
	return found
}

// reserve claims a port, of any address, until the test ends, and reports whether it was free. The
// claim is a socket without a file, in the network namespace to which the port belongs. The kernel
// removes it with the process.
func reserve(t testing.TB, port string) (bool, error) {
	claim, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "@etcd-operator-test-port-"+port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.Cleanup(func() { claim.Close() })
	return true, nil
}
