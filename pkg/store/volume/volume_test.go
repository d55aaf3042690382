// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/pkg/store"
)

func openAt(t *testing.T, root, dir string) *Store {
	t.Helper()
	opened, err := Open(t.Context(), Config{Root: root, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

func put(t *testing.T, in *Store, key, content string, metadata map[string]string) {
	t.Helper()
	if _, err := in.Put(t.Context(), key, store.Upload{Body: strings.NewReader(content), Size: -1, Metadata: metadata}); err != nil {
		t.Fatal(err)
	}
}

// files are all that is below a directory, with their modes.
func files(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	found := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		found[strings.TrimPrefix(path, dir+"/")] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFilesAreForTheOperatorAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, openAt(t, dir, "ns"), "a/etcd.backup", "content", map[string]string{"key": "value"})
	found := files(t, dir)
	for name, mode := range found {
		if want := fs.FileMode(fileMode); !mode.IsDir() && mode != want {
			t.Errorf("%s has the mode %v, want %v", name, mode, want)
		}
		if want := fs.ModeDir | dirMode; mode.IsDir() && mode != want {
			t.Errorf("%s has the mode %v, want %v", name, mode, want)
		}
	}
	if len(found) != 4 { // ns, a, the file, its metadata
		t.Errorf("there are %v", found)
	}
}

func TestNothingLeadsOutOfADirectory(t *testing.T) {
	dir := t.TempDir()
	other, mine := openAt(t, dir, "other"), openAt(t, dir, "mine")
	put(t, other, "secret", "content", nil)
	if err := os.Symlink("../other", filepath.Join(dir, "mine", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../other/secret", filepath.Join(dir, "mine", "file")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", ".", "..", "../other/secret", "a/../../other/secret", "/etc/passwd", "a//b", "a/", "./a", "a\x00b", "link/secret", "file"} {
		if body, err := mine.Get(t.Context(), key, 0); err == nil {
			content, _ := io.ReadAll(body)
			t.Errorf("get %q: %s", key, content)
		}
		if key == "file" {
			continue // to put it replaces the link, which is no harm
		}
		if _, err := mine.Put(t.Context(), key, store.Upload{Body: strings.NewReader("x"), Size: 1}); err == nil {
			t.Errorf("put %q: no error", key)
		}
	}
	for _, prefix := range []string{"", "l", "link", "link/", "file", "../", "../other/"} {
		for object, err := range mine.List(t.Context(), prefix) {
			if err == nil {
				t.Errorf("list %q: %+v", prefix, object)
			}
		}
	}
	if got := slices.Sorted(maps.Keys(files(t, filepath.Join(dir, "other")))); len(got) != 2 || got[1] != "secret" {
		t.Errorf("the other directory has %v", got)
	}
}

func TestHiddenNamesAreKept(t *testing.T) {
	in := openAt(t, t.TempDir(), "")
	for _, kind := range []string{uploading, metadata} {
		key := hidden{key: "dir/key", id: newID(), kind: kind}.path()
		if _, err := in.Put(t.Context(), key, store.Upload{Body: strings.NewReader(""), Size: 0}); !errors.Is(err, store.ErrConfig) {
			t.Errorf("put %s: %v", key, err)
		}
	}
	if _, err := in.Put(t.Context(), strings.Repeat("x", maxName+1), store.Upload{Body: strings.NewReader(""), Size: 0}); !errors.Is(err, store.ErrConfig) {
		t.Errorf("long name: %v", err)
	}
}

// Each state that a crash can leave while an object is replaced: the metadata are
// always those of the content.
func TestACrashDoesNotMixMetadata(t *testing.T) {
	dir := t.TempDir()
	in := openAt(t, dir, "")
	expect := func(state, content, of string) {
		t.Helper()
		got, err := in.Stat(t.Context(), "key")
		if err != nil || got.Metadata["of"] != of || got.Size != int64(len(content)) {
			t.Errorf("%s: %+v, error %v; want the metadata of %s", state, got, err, of)
		}
	}
	put(t, in, "key", "old", map[string]string{"of": "old"})
	expect("before", "old", "old")

	// As put does it, step by step.
	upload := hidden{key: "key", id: newID(), kind: uploading}
	if err := in.write(t.Context(), upload.path(), strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}
	expect("content is written", "old", "old")
	if _, _, err := in.bind(upload, map[string]string{"of": "new"}); err != nil {
		t.Fatal(err)
	}
	expect("metadata are written", "old", "old")
	if err := os.Rename(filepath.Join(dir, upload.path()), filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	expect("renamed", "new", "new")

	// The metadata of old are left, which is what Sweep is for.
	if found := files(t, dir); len(found) != 3 {
		t.Errorf("there are %v", found)
	}
	if _, err := in.Sweep(t.Context(), "", time.Now().Add(time.Hour), func(string) bool { return true }); err != nil {
		t.Error(err)
	}
	if found := files(t, dir); len(found) != 2 {
		t.Errorf("after the sweep there are %v", found)
	}
	expect("swept", "new", "new")
}

// After the rename, the former content is gone: to remove the new one would leave none.
func TestAnErrorAfterTheRenameKeepsTheNewContent(t *testing.T) {
	for _, former := range []bool{true, false} {
		in := openAt(t, t.TempDir(), "")
		if former {
			put(t, in, "key", "old", map[string]string{"of": "old"})
		}
		in.fsync = func(file *os.File) error {
			if info, err := file.Stat(); err != nil || info.IsDir() {
				return errors.Join(err, syscall.EIO)
			}
			return file.Sync()
		}
		_, err := in.Put(t.Context(), "key", store.Upload{Body: strings.NewReader("newer"), Size: -1, Metadata: map[string]string{"of": "new"}})
		if !errors.Is(err, syscall.EIO) || errors.Is(err, store.ErrLeft) {
			t.Errorf("put: %v", err)
		}
		if got, err := in.Stat(t.Context(), "key"); err != nil || got.Metadata["of"] != "new" || got.Size != 5 {
			t.Errorf("it replaced one: %v, there is %+v, error %v", former, got, err)
		}
	}
}

// File systems of other machines may round times: those of whole seconds stay.
// An NFS client that gets no answer asks again, and then the file is no longer there.
func TestARenameThatWasDoneIsNoError(t *testing.T) {
	in := openAt(t, t.TempDir(), "")
	put(t, in, "etcd.backup", "former", map[string]string{"revision": "1"})
	in.rename = func(from, to string) error {
		if err := in.root.Rename(from, to); err != nil {
			return err
		}
		return in.root.Rename(from, to)
	}
	put(t, in, "etcd.backup", "newer", map[string]string{"revision": "2"})
	if kept, err := in.Stat(t.Context(), "etcd.backup"); err != nil || kept.Metadata["revision"] != "2" {
		t.Errorf("after a rename whose first answer was lost: %+v, %v; want the new metadata", kept, err)
	}

	in.rename = func(string, string) error { return syscall.EIO }
	if _, err := in.Put(t.Context(), "etcd.backup", store.Upload{Body: strings.NewReader("third"), Size: -1}); !errors.Is(err, syscall.EIO) {
		t.Errorf("a rename that was not done: %v, want its error", err)
	}
	if kept, err := in.Stat(t.Context(), "etcd.backup"); err != nil || kept.Metadata["revision"] != "2" {
		t.Errorf("after a rename that was not done: %+v, %v; want what was there", kept, err)
	}
}

func TestMetadataStayWithContentWhoseTimeIsRounded(t *testing.T) {
	dir := t.TempDir()
	in := openAt(t, dir, "")
	put(t, in, "key", "content", map[string]string{"of": "this"})
	path := filepath.Join(dir, "key")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if at := info.ModTime().Truncate(time.Second); os.Chtimes(path, at, at) != nil {
		t.Fatal("the time can't be set")
	}
	if got, err := in.Stat(t.Context(), "key"); err != nil || got.Metadata["of"] != "this" {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// Content of the same size, within the same second.
func TestMetadataOfContentMadeAtOnceAreToldApart(t *testing.T) {
	dir := t.TempDir()
	in := openAt(t, dir, "")
	for _, of := range []string{"a", "b", "c", "d", "e"} {
		put(t, in, "key", of, map[string]string{"of": of})
	}
	upload := hidden{key: "key", id: newID(), kind: uploading}
	if err := in.write(t.Context(), upload.path(), strings.NewReader("f")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := in.bind(upload, map[string]string{"of": "f"}); err != nil {
		t.Fatal(err)
	}
	// It is cut off before it becomes visible.
	if got, err := in.Stat(t.Context(), "key"); err != nil || got.Metadata["of"] != "e" {
		t.Errorf("got %+v, error %v", got, err)
	}
	if found := files(t, dir); len(found) != 4 { // content and metadata, of e and of f
		t.Errorf("there are %v", found)
	}
}

func TestMetadataGoWithTheirContent(t *testing.T) {
	dir := t.TempDir()
	in := openAt(t, dir, "")
	put(t, in, "key", "old", map[string]string{"of": "old"})
	put(t, in, "key", "new", map[string]string{"of": "new"})
	if found := files(t, dir); len(found) != 2 {
		t.Errorf("after it was replaced there are %v", found)
	}
	// Somebody else writes the file: nothing is known of that.
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("by hand"), fileMode); err != nil {
		t.Fatal(err)
	}
	if got, err := in.Stat(t.Context(), "key"); err != nil || len(got.Metadata) > 0 {
		t.Errorf("written by hand: %+v, error %v", got, err)
	}
	put(t, in, "other", "content", map[string]string{"of": "other"})
	if err := in.Delete(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	for name := range files(t, dir) {
		if strings.Contains(name, "other") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestAVolumeMustBeThere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, fileMode); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		config Config
		want   error
	}{
		{Config{}, store.ErrConfig},
		{Config{Root: filepath.Join(dir, "none"), Dir: "ns"}, store.ErrNoBucket},
		{Config{Root: dir, Dir: "../ns"}, store.ErrConfig},
		{Config{Root: dir, Dir: "/"}, store.ErrConfig},
		{Config{Root: dir, Dir: "file"}, nil},
		{Config{Root: filepath.Join(dir, "file")}, nil},
	} {
		opened, err := Open(t.Context(), tt.config)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, error %v, want %v", tt.config, opened, err, tt.want)
		}
	}
}
