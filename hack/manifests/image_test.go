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
	image, err := imageOf(root, "")
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

// hack/release names the version of the release, whatever internal/version says.
func TestAReleaseNamesItsOwnVersion(t *testing.T) {
	image, err := imageOf(root, "v9.8.7-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	files, err := referencesOf(root, image)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// The values of the chart name the repository alone.
		if f.path != "charts/etcd-operator/values.yaml" && !strings.Contains(string(f.text), "9.8.7-rc.1") {
			t.Errorf("%s does not name v9.8.7-rc.1", f.path)
		}
	}
}

// hack/image and hack/release build the image under its name.
func TestTheBuildNamesTheImage(t *testing.T) {
	image, err := imageOf(root, "")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, "hack/localkube/operatorimage/source.go"), `const Repository = "`+image.repository+`"`) {
		t.Errorf("hack/localkube/operatorimage does not build %s", image.repository)
	}
}
