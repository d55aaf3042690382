// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// forTwo is an image for two architectures, in an archive.
func forTwo(t *testing.T) (file, digest string) {
	t.Helper()
	intel, arm := example(t, true), example(t, true)
	intel.Arch = "amd64"
	file = filepath.Join(t.TempDir(), "dist", "image.tar")
	digest, err := WriteIndex(file, "docker.io/someone/example:1.0", []Image{intel, arm})
	if err != nil {
		t.Fatal(err)
	}
	return file, digest
}

// unpack unpacks an archive as an OCI layout.
func unpack(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	directory := t.TempDir()
	for name, content := range read(t, f) {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestAnImageForSeveralArchitecturesIsAnOCILayout(t *testing.T) {
	file, digest := forTwo(t)
	index, err := layout.ImageIndexFromPath(unpack(t, file))
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(top.Manifests) != 1 || top.Manifests[0].Digest.String() != digest || top.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/someone/example:1.0" {
		t.Fatalf("index.json: %+v, want %s alone, with its name", top.Manifests, digest)
	}
	image, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(image); err != nil {
		t.Error(err)
	}
	manifest, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		architectureIs(t, image, m)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms %q, want %q", platforms, want)
	}
}

// architectureIs fails the test if an image is for another platform than the index says.
func architectureIs(t *testing.T, index v1.ImageIndex, d v1.Descriptor) {
	t.Helper()
	image, err := index.Image(d.Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != d.Platform.Architecture {
		t.Errorf("the image for %s is for %s", d.Platform, config.Architecture)
	}
}

func TestTheSameImagesGiveTheSameDigest(t *testing.T) {
	file, digest := forTwo(t)
	otherFile, otherDigest := forTwo(t)
	if digest != otherDigest {
		t.Errorf("digests %s and %s", digest, otherDigest)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(otherFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(content, other) {
		t.Error("two archives of the same images differ")
	}
}
