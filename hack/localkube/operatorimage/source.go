// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatorimage builds the operators' image from a source tree: its programs, its files
// and its labels. hack/image and hack/release share it.
package operatorimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
)

// Repository is the repository of the image, with its registry.
const Repository = "docker.io/etcd-operator/etcd-operator"

// versionPackage holds the variables that the linker sets.
const versionPackage = "github.com/etcd-operator/etcd-operator/internal/version"

// Programs are those of the image: their directory below cmd, and their name.
var Programs = map[string]string{
	"operator":         "etcd-operator",
	"launcher":         "etcd-launcher",
	"backup-operator":  "etcd-backup-operator",
	"restore-operator": "etcd-restore-operator",
}

// A Source is a source tree, and what its programs say about themselves.
type Source struct {
	Root    string
	Version string // such as v1.2.3 or v1.2.3-rc.1
	Commit  string
}

var versions = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?$`)

// CheckVersion refuses a version that no release can have.
func CheckVersion(version string) error {
	if !versions.MatchString(version) {
		return fmt.Errorf("version %q: want something like v1.2.3 or v1.2.3-rc.1", version)
	}
	return nil
}

// Build compiles programs, which it names by their directories below cmd, into a directory. For
// Windows, their names get the suffix .exe. The same source gives the same bytes.
func (s Source) Build(ctx context.Context, goos, arch, directory string, programs ...string) error {
	// With the flags of the local Kubernetes' programs, shared packages are compiled once.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]s.Version=%[2]s -X %[1]s.GitSHA=%[3]s", versionPackage, s.Version, s.Commit),
		"-o", directory + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Root
	cmd.Env = environ.Changes{Set: []string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=" + goos, "GOARCH=" + arch}}.Apply(os.Environ())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", strings.Join(programs, ", "), goos, arch, err, bytes.TrimSpace(out))
	}
	return nil
}
