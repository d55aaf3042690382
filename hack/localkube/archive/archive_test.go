// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func example(t *testing.T, compressed bool) Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Image{
		Names:      []string{"docker.io/library/example:1", "docker.io/someone/example:1.0"},
		Arch:       "arm64",
		Layers:     [][]File{{{Path: "/tmp", Dir: true, Mode: 0o1777}}, {{Path: "/usr/bin/program", Mode: 0o755, Source: program}, {Path: "/bin", Mode: 0o777, Link: "usr/bin"}}},
		Compressed: compressed,
		User:       "65532:65532",
		Entrypoint: []string{"/usr/bin/program"},
	}
}

// read returns the entries of an archive by name.
func read(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	entries := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		if entries[h.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArchiveIsReadByContainerdAndDocker(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dist", "image.tar")
	if err := Write(file, example(t, true)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	entries := read(t, f)

	var docker []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(entries["manifest.json"], &docker); err != nil {
		t.Fatal(err)
	}
	if want := []string{"example:1", "someone/example:1.0"}; !slices.Equal(docker[0].RepoTags, want) {
		t.Errorf("docker's tags: got %q, want %q", docker[0].RepoTags, want)
	}
	if len(docker[0].Layers) != 2 {
		t.Errorf("layers %q, want 2", docker[0].Layers)
	}
	for _, blob := range append(docker[0].Layers, docker[0].Config) {
		if _, ok := entries[blob]; !ok {
			t.Errorf("%s is named, but not there", blob)
		}
	}
	var config struct {
		Architecture string
		Config       struct {
			User       string
			Entrypoint []string
		}
	}
	if err := json.Unmarshal(entries[docker[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/program"}) {
		t.Errorf("config: %+v", config)
	}
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(entries["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 2 {
		t.Fatalf("the index names %d images, want 2", len(index.Manifests))
	}
	for i, want := range []string{"docker.io/library/example:1", "docker.io/someone/example:1.0"} {
		if got := index.Manifests[i].Annotations["io.containerd.image.name"]; got != want {
			t.Errorf("containerd's name: got %q, want %q", got, want)
		}
	}
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		var archives [2][]byte
		for n := range archives {
			file := filepath.Join(t.TempDir(), "image.tar")
			if err := Write(file, example(t, compressed)); err != nil {
				t.Fatal(err)
			}
			var err error
			if archives[n], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(archives[0], archives[1]) {
			t.Errorf("two archives of one image differ (compressed: %v)", compressed)
		}
	}
}

func TestLayerHasParentsOnceAndInOrder(t *testing.T) {
	content, err := pack([]File{
		{Path: "/usr/local/bin/b", Content: []byte("b")},
		{Path: "/usr/local/bin/a", Content: []byte("a")},
		{Path: "/usr", Dir: true, Mode: 0o700},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tr := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
		if h.Name == "usr/" && h.Mode != 0o700 {
			t.Errorf("the mode given for /usr is lost: %o", h.Mode)
		}
	}
	want := []string{"usr/", "usr/local/", "usr/local/bin/", "usr/local/bin/a", "usr/local/bin/b"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestOddPathsAreRefused(t *testing.T) {
	source := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(source, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pack([]File{{Path: "/a", Source: source}, {Path: "/bin/a", Source: source}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files []File
		want  string
	}{
		"relative": {[]File{{Path: "bin/a", Source: source}}, "not a clean absolute path"},
		"dots":     {[]File{{Path: "/bin/../a", Source: source}}, "not a clean absolute path"},
		"twice":    {[]File{{Path: "/a", Source: source}, {Path: "/a", Source: source}}, "/a is in the image twice"},
		"no file":  {[]File{{Path: "/a", Source: source + "-not"}}, "no such file"},
	} {
		if _, err := pack(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func TestFailedWriteLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	broken := Image{Names: []string{"example:1"}, Layers: [][]File{{{Path: "relative"}}}}
	if err := Write(filepath.Join(dir, "image.tar"), broken); err == nil {
		t.Fatal("a broken image was written")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
