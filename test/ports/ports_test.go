// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"net"
	"testing"
)

func TestPortsAreFreeAndDiffer(t *testing.T) {
	const n = 300
	seen := map[string]bool{}
	for _, port := range Free(t, "127.0.0.1", n) {
		seen[port] = true
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Errorf("port %s: %v", port, err)
			continue
		}
		defer listener.Close()
	}
	if len(seen) != n {
		t.Errorf("%d of %d ports differ", len(seen), n)
	}
}

// While a server is down, its test may still run. Nobody else may get its port then.
func TestAPortIsReservedUntilItsTestEnds(t *testing.T) {
	var port string
	t.Run("in use", func(t *testing.T) {
		port = Free(t, "127.0.0.1", 1)[0]
		if free, err := reserve(t, port); err != nil || free {
			t.Errorf("port %s can be reserved twice: %v, %v", port, free, err)
		}
	})
	if free, err := reserve(t, port); err != nil || !free {
		t.Errorf("port %s is still reserved after its test: %v, %v", port, free, err)
	}
}
