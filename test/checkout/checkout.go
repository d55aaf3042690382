// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkout finds the files of this repository for tests that run its scripts.
package checkout

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Root returns the directory of the checkout that holds the working directory. The go command runs
// each test in the directory of its package. The place where the compiler found the source
// does not serve: -trimpath removes it.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		// The modules below the root have a file of that name too.
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/etcd-operator/etcd-operator\n")) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the checkout: neither %s nor a directory above it has the go.mod of etcd-operator: run the test in its package's directory", start)
		}
	}
}
