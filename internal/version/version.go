// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version identifies the build of the operators.
package version

import (
	"fmt"
	"runtime"
)

// Repository is the operators' image, without its tag. hack/update-codegen.sh writes it into the
// manifests and the chart.
const Repository = "docker.io/etcd-operator/etcd-operator"

// Set by the build with -ldflags "-X …/internal/version.Version=v1.0.0".
var (
	// Version is the release, a semantic version with a leading v.
	Version = "v1.0.0-dev"
	// GitSHA is the commit of the build.
	GitSHA = "unknown"
)

// Text is the output of -version.
func Text(program string) string {
	return fmt.Sprintf("%s Version: %s\nGit SHA: %s\nGo Version: %s\nGo OS/Arch: %s/%s\n",
		program, Version, GitSHA, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
