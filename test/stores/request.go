// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"os"
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
	parsed := net.ParseIP(ip).To4()
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || parsed == nil {
		return false, fmt.Errorf("%s is no address of IPv4", net.JoinHostPort(ip, port))
	}
	// The address in the machine's byte order, printed as a number.
	local := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(parsed), number)
	file, err := os.Open("/proc/net/tcp")
	if err != nil {
		return false, err
	}
	defer file.Close()
	const listening = "0A"
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[1] != local || fields[3] == listening {
			continue
		}
		if _, received, ok := strings.Cut(fields[4], ":"); ok && strings.Trim(received, "0") != "" {
			return true, nil
		}
	}
	return false, nil
}
