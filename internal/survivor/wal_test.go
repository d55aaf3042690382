// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package survivor

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/raftlog"
)

func TestTheNewestFileOfTheLogNamesTheCluster(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "member", "wal")
	must(t, os.MkdirAll(logs, 0o700))
	server, _ := newServer(dir, closedPort)
	if _, err := server.readIdentity(); err == nil {
		t.Error("an empty directory has an identity")
	}
	for name, text := range map[string][]byte{
		"0000000000000000-0000000000000000.wal": logOf(t, 0, 1, 2),
		"0000000000000009-00000000000003e8.wal": logOf(t, 7, 3, 4),
		"000000000000000a-00000000000007d0.wal": logOf(t, 0xfffffff0, 5, 6),
		"0.tmp":                                 nil,
		"1.tmp":                                 nil,
	} {
		must(t, os.WriteFile(filepath.Join(logs, name), text, 0o600))
	}
	if got, err := server.readIdentity(); err != nil || got != (identity{cluster: 5, member: 6}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestALogWithAnotherBeginningIsAnError(t *testing.T) {
	text := logOf(t, 7, 3, 4)
	if got, err := parseIdentity(bytes.NewReader(text)); err != nil || got != (identity{cluster: 3, member: 4}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	end := len(bytes.TrimRight(text, "\x00"))
	for at := range end {
		if _, err := parseIdentity(bytes.NewReader(text[:at])); !errors.Is(err, raftlog.ErrNoLog) {
			t.Errorf("cut after %d bytes: %v", at, err)
		}
		broken := bytes.Clone(text)
		broken[at] ^= 0x10
		got, err := parseIdentity(bytes.NewReader(broken))
		if err == nil && got != (identity{cluster: 3, member: 4}) {
			t.Errorf("byte %d differs, and the identity is %+v", at, got)
		}
		if err != nil && !errors.Is(err, raftlog.ErrNoLog) {
			t.Errorf("byte %d differs: %v", at, err)
		}
	}
	if _, err := parseIdentity(bytes.NewReader(logOf(t, 7, 0, 4))); !errors.Is(err, raftlog.ErrNoLog) {
		t.Errorf("without a cluster: %v", err)
	}
	if _, err := parseIdentity(bytes.NewReader(make([]byte, 4096))); !errors.Is(err, raftlog.ErrNoLog) {
		t.Errorf("zeros: %v", err)
	}
}
