// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var then = time.Date(2026, 11, 22, 10, 0, 1, 0, time.UTC)

// checkout writes a directory, as a checkout with its own modes and times would.
func checkout(t *testing.T, mode fs.FileMode, written time.Time) string {
	t.Helper()
	directory := t.TempDir()
	for _, name := range []string{"templates/b.yaml", "Chart.yaml", "templates/a.yaml"} {
		file := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("# "+name), mode); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(file, mode), os.Chtimes(file, written, written)); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestArchivesDependOnTheContentAlone(t *testing.T) {
	for name, write := range map[string]func(io.Writer, []entry, time.Time) error{"tar": tarGz, "zip": zipped} {
		var archives [2]bytes.Buffer
		for i, c := range []struct {
			mode fs.FileMode
			at   time.Time
			zone *time.Location
		}{{0o600, then, time.UTC}, {0o664, then.Add(time.Hour), time.FixedZone("elsewhere", 3600)}} {
			entries, err := entriesOf(checkout(t, c.mode, c.at), "chart")
			if err != nil {
				t.Fatal(err)
			}
			if err := write(&archives[i], entries, then.In(c.zone)); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
			t.Errorf("%s: two archives of the same content differ", name)
		}
	}
}

var mixed = []entry{{"LICENSE", 0o644, []byte("a")}, {"program", 0o755, []byte("bc")}}

var wantMixed = []string{"LICENSE -rw-r--r-- a 2026-11-22T10:00:01Z", "program -rwxr-xr-x bc 2026-11-22T10:00:01Z"}

func TestTarKeepsModesAndTheTime(t *testing.T) {
	var text bytes.Buffer
	if err := tarGz(&text, mixed, then); err != nil {
		t.Fatal(err)
	}
	if got := unpackTarGz(t, text.Bytes()); !slices.Equal(got, wantMixed) {
		t.Errorf("got %q, want %q", got, wantMixed)
	}
}

// unpackTarGz returns name, mode, content and time of each file.
func unpackTarGz(t *testing.T, text []byte) []string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %s %s %s", header.Name, header.FileInfo().Mode(), content, header.ModTime.UTC().Format(time.RFC3339)))
	}
}

func TestZipKeepsModesAndTheTime(t *testing.T) {
	var text bytes.Buffer
	if err := zipped(&text, mixed, then); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, file := range archive.File {
		content, err := fs.ReadFile(archive, file.Name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", file.Name, file.Mode(), content, file.Modified.UTC().Format(time.RFC3339)))
	}
	if !slices.Equal(got, wantMixed) {
		t.Errorf("got %q, want %q", got, wantMixed)
	}
}
