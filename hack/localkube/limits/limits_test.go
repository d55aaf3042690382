// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const instances = "fs/inotify/max_user_instances"

func host(t *testing.T, value string) Limits {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, instances)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Limits{Sys: dir, Saved: filepath.Join(dir, "saved")}
}

func (l Limits) expect(t *testing.T, value string, kept bool) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(l.Sys, instances))
	if err != nil || strings.TrimSpace(string(b)) != value {
		t.Errorf("the limit is %q, %v, want %s", b, err, value)
	}
	if _, err := os.Stat(l.Saved); errors.Is(err, fs.ErrNotExist) == kept {
		t.Errorf("the file with the old value: %v, want it kept: %v", err, kept)
	}
}

func unused() (bool, error) { return false, nil }
func used() (bool, error)   { return true, nil }

func TestLowLimitIsRaisedAndPutBackByTheLast(t *testing.T) {
	l := host(t, "128")
	for range 2 { // two instances
		if err := l.Raise(); err != nil {
			t.Fatal(err)
		}
		l.expect(t, "1024", true)
	}
	if err := l.Restore(used); err != nil {
		t.Fatal(err)
	}
	l.expect(t, "1024", true)
	for range 2 {
		if err := l.Restore(unused); err != nil {
			t.Fatal(err)
		}
		l.expect(t, "128", false)
	}
}

func TestHighLimitIsLeftAlone(t *testing.T) {
	l := host(t, "8192")
	if err := l.Raise(); err != nil {
		t.Fatal(err)
	}
	l.expect(t, "8192", false)
	if err := l.Restore(unused); err != nil {
		t.Fatal(err)
	}
	l.expect(t, "8192", false)
}

func TestBrokenNoteIsReported(t *testing.T) {
	l := host(t, "128")
	if err := os.WriteFile(l.Saved, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Raise(); err == nil || !strings.Contains(err.Error(), l.Saved) {
		t.Errorf("got %v", err)
	}
	l.expect(t, "128", true)
}
