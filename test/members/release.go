// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members runs real members of etcd for tests without Kubernetes. They are children of
// the test, keep their data in its temporary directory, and end with it. hack/kube builds
// absent programs.
package members

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/etcd-operator/etcd-operator/test/checkout"
)

// Release is an etcd release that is built on this machine.
type Release struct {
	Version string // such as 3.6.16
	dir     string
}

// Minor is such as 3.6.
func (r Release) Minor() string { return r.Version[:strings.LastIndex(r.Version, ".")] }

// found are the releases, after the first search.
var found struct {
	sync.Mutex
	releases []Release
}

// Releases returns the built releases: 3.5, 3.6 and 3.7, after Debian's older one.
func Releases(t testing.TB) []Release {
	t.Helper()
	found.Lock()
	defer found.Unlock()
	if found.releases != nil {
		return found.releases
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	var messages strings.Builder
	build := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "kube"), "etcd")
	build.Stderr = &messages
	out, err := build.Output()
	if err != nil {
		t.Fatalf("build etcd by %s: %v\n%s", build, err, messages.String())
	}
	for line := range strings.Lines(string(out)) {
		version, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Fatalf("%s printed %q, want a version and a directory", build, line)
		}
		found.releases = append(found.releases, Release{Version: version, dir: dir})
	}
	return found.releases
}

// ReleaseOf returns the release of a minor version, such as 3.6.
func ReleaseOf(t testing.TB, minor string) Release {
	t.Helper()
	for _, r := range Releases(t) {
		if r.Minor() == minor {
			return r
		}
	}
	t.Fatalf("etcd %s is not among the releases that are built", minor)
	return Release{}
}

// Run runs etcdctl or etcdutl and returns its output.
func (r Release) Run(t testing.TB, program string, args ...string) string {
	t.Helper()
	var messages strings.Builder
	cmd := exec.CommandContext(t.Context(), filepath.Join(r.dir, program), args...)
	cmd.Env = []string{"ETCDCTL_API=3"}
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, messages.String())
	}
	return string(out)
}

// Program returns the path of one of its programs.
func (r Release) Program(name string) string { return filepath.Join(r.dir, name) }

// SnapshotTool returns the program for snapshots: etcdctl before etcd 3.5.
func (r Release) SnapshotTool() string {
	if r.Minor() == "3.4" {
		return "etcdctl"
	}
	return "etcdutl"
}

// String is the release's name in tests.
func (r Release) String() string { return fmt.Sprintf("etcd %s", r.Version) }
