// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime"
	"testing"

	"github.com/blang/semver/v4"
)

func TestTextNamesTheBuild(t *testing.T) {
	want := "etcd-operator Version: " + Version + "\nGit SHA: " + GitSHA +
		"\nGo Version: " + runtime.Version() + "\nGo OS/Arch: " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if got := Text("etcd-operator"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The operator compares its version with the one that a CRD is stamped with.
func TestVersionIsSemantic(t *testing.T) {
	if _, err := semver.ParseTolerant(Version); err != nil {
		t.Error(err)
	}
}
