// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files writes a directory with sums.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, content := range contents {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(directory); err != nil {
		t.Fatal(err)
	}
	return directory
}

func TestSha256sumReadsTheSums(t *testing.T) {
	directory := files(t, map[string]string{"a": "1", "b.tar.gz": "2"})
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", sumsName)
	cmd.Dir = directory
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCheckComparesTwoRuns(t *testing.T) {
	same := func() string { return files(t, map[string]string{"a": "1", "b": "2"}) }
	changed := func(name, content string) string {
		directory := same()
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return directory
	}
	removed := same()
	if err := os.Remove(filepath.Join(removed, "b")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ a, b, says string }{
		"the same":              {same(), same(), ""},
		"other content":         {same(), files(t, map[string]string{"a": "1", "b": "3"}), `differ in ["b"]`},
		"a file more":           {same(), files(t, map[string]string{"a": "1", "b": "2", "c": ""}), `differ in ["c"]`},
		"a file less":           {same(), files(t, map[string]string{"a": "1"}), `differ in ["b"]`},
		"changed since":         {same(), changed("b", "3"), `these files are not those of SHA256SUMS: ["b"]`},
		"added since":           {changed("c", "3"), same(), `these files are not those of SHA256SUMS: ["c"]`},
		"removed since":         {removed, same(), `these files are not those of SHA256SUMS: ["b"]`},
		"no sums":               {same(), t.TempDir(), "no such file"},
		"empty sums":            {files(t, nil), files(t, nil), "SHA256SUMS is empty"},
		"sums of something odd": {same(), changed(sumsName, "1234  a\n"), `want lines of sha256sum, got "1234  a"`},
	} {
		var out bytes.Buffer
		err := run(t.Context(), []string{"check", c.a, c.b}, &out)
		switch {
		case c.says == "":
			if err != nil || !strings.Contains(out.String(), "have the same 2 files") {
				t.Errorf("%s: %v, %q", name, err, &out)
			}
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: got %v, want an error with %q", name, err, c.says)
		}
	}
}

func TestAWrongCommandLineIsRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"check"}, {"check", "a"}, {"make", "more"}, {"make", "-platform=linux"}, {"unmake"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); !errors.Is(err, errUsage) {
			t.Errorf("%q: got %v, want the usage", args, err)
		}
	}
}
