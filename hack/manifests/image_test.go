// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named matches the operators' image, with and without a registry.
var named = regexp.MustCompile(`(?m)[a-z0-9./:-]*etcd-operator/etcd-operator(?:[:@][A-Za-z0-9._:-]+)`)

// Every manifest and page names the image that internal/version names, with its registry.
func TestEveryReferenceNamesTheOneImage(t *testing.T) {
	image, err := imageOf(root)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, directory := range []string{"deploy", "charts", "example", "doc", "README.md", "Dockerfile"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			path, err = filepath.Rel(root, path)
			if err != nil {
				return err
			}
			for _, reference := range named.FindAllString(read(t, path), -1) {
				found++
				if reference != image.String() {
					t.Errorf("%s names %s, want %s", path, reference, image)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 15 {
		t.Errorf("found %d references, want at least those of deploy/, example/ and the two installs", found)
	}
}

// hack/image builds the image under its name.
func TestTheBuildNamesTheImage(t *testing.T) {
	image, err := imageOf(root)
	if err != nil {
		t.Fatal(err)
	}
	name, ok := strings.CutPrefix(image.repository, "docker.io/")
	if !ok || !strings.Contains(read(t, "hack/localkube/cli/image.go"), `const imageName = "`+name+`"`) {
		t.Errorf("hack/localkube/cli/image.go does not build %s", image.repository)
	}
}
