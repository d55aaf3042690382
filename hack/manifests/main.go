// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manifests writes what is derived from deploy/: install.yaml, and the files of the Helm
// chart. It also writes the operators' image, which internal/version names, into all manifests.
//
//	manifests [-verify] [-version VERSION] ROOT
//
// With -verify, it writes nothing and fails if a file differs. With -version, the manifests name
// the image of that release: hack/release works on a copy of the tree.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	verify := flag.Bool("verify", false, "write nothing; fail if a file is not what would be written")
	version := flag.String("version", "", "the `release` to name, instead of that of internal/version")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: manifests [-verify] [-version VERSION] ROOT")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *verify, *version); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(root string, verify bool, version string) error {
	write := write
	if verify {
		write = compare
	}
	image, err := imageOf(root, version)
	if err != nil {
		return err
	}
	// The image comes first: the other files contain it.
	references, err := referencesOf(root, image)
	if err != nil {
		return err
	}
	for _, file := range references {
		if err := write(root, file); err != nil {
			return err
		}
	}
	derived, err := derivedFrom(root, image)
	if err != nil {
		return err
	}
	for _, file := range derived {
		if err := write(root, file); err != nil {
			return err
		}
	}
	return nil
}

// file is a generated file. Its path is relative to the root.
type file struct {
	path string
	text []byte
}

// write leaves a file alone that is as it should be: somebody may be reading it.
func write(root string, f file) error {
	path := filepath.Join(root, f.path)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, f.text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, f.text, 0o644)
}

func compare(root string, f file) error {
	text, err := os.ReadFile(filepath.Join(root, f.path))
	if err != nil {
		return err
	}
	if !bytes.Equal(text, f.text) {
		return fmt.Errorf("%s is not what its sources generate: run hack/update-codegen.sh and commit the result", f.path)
	}
	return nil
}
