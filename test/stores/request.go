// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// AwaitRequest waits until a frozen server has unread bytes: some client waits for its answer,
// or has waited.
func (s *Server) AwaitRequest(t testing.TB) {
	t.Helper()
	timeout := time.NewTimer(startTime)
	defer timeout.Stop()
	for {
		unread, err := unreadAt(s.ip, s.port)
		if err != nil {
			t.Fatalf("look at the connections to %s: %v", s.Endpoint, err)
		}
		if unread {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("the server at %s was sent nothing: %v", s.Endpoint, t.Context().Err())
		case <-timeout.C:
			t.Fatalf("the server at %s was sent nothing within %v", s.Endpoint, startTime)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// unreadAt reports whether a connection to an address and port of this machine has unread
// bytes; see proc_net_tcp(5).
func unreadAt(ip, port string) (bool, error) {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return false, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return false, err
	}
	table := "/proc/net/tcp"
	if address.Is6() {
		table += "6"
	}
	// Each 32 bits of the address in the machine's byte order, printed as a number.
	var local strings.Builder
	for word := range slices.Chunk(address.AsSlice(), 4) {
		fmt.Fprintf(&local, "%08X", binary.NativeEndian.Uint32(word))
	}
	fmt.Fprintf(&local, ":%04X", number)
	file, err := os.Open(table)
	if err != nil {
		return false, err
	}
	defer file.Close()
	const listening = "0A"
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[1] != local.String() || fields[3] == listening {
			continue
		}
		if _, received, ok := strings.Cut(fields[4], ":"); ok && strings.Trim(received, "0") != "" {
			return true, nil
		}
	}
	return false, nil
}
