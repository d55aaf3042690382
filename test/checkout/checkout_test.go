// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheRootIsFoundBelowIt(t *testing.T) {
	t.Chdir("../../hack/localkube/pause") // in a module of its own
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "test", "checkout", "checkout.go")); err != nil {
		t.Fatalf("Root() = %s: %v", root, err)
	}
}

func TestAStrangeDirectoryHasNoRoot(t *testing.T) {
	t.Chdir(t.TempDir())
	if root, err := Root(); err == nil || !strings.Contains(err.Error(), "run the test in its package's directory") {
		t.Fatalf("Root() = %q, %v; want an error that says what to do", root, err)
	}
}
