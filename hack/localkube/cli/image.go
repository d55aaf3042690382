// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/archive"
	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
)

// imageName is the repository of the operator's image.
const imageName = "etcd-operator/etcd-operator"

// versionPackage holds the variables that the linker sets.
const versionPackage = "github.com/etcd-operator/etcd-operator/internal/version"

// programs are the operators: their directory below cmd, and their name.
var programs = map[string]string{
	"operator":         "etcd-operator",
	"backup-operator":  "etcd-backup-operator",
	"restore-operator": "etcd-restore-operator",
}

const imageHelp = `hack/image [flags]

Builds the operator's image, without a container engine, and writes an archive
for each architecture into dist/: containerd, docker, podman and kind load it.

Flags:`

func image(ctx context.Context, a *App, args []string) error {
	f := a.flags("image", imageHelp)
	archs := f.String("arch", runtime.GOARCH, "architectures, separated by commas: amd64, arm64")
	version := f.String("version", "", "version, such as v1.2.3 (that of internal/version)")
	dist := f.String("dist", filepath.Join(a.Root, "dist"), "directory for the archives")
	only := f.String("programs", "operator,backup-operator,restore-operator", "directories below cmd whose programs the image gets, separated by commas: fewer are built sooner")
	loadIt := f.Bool("load", false, "import the archive of this machine's architecture into the local Kubernetes, and don't compress it")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if *version == "" {
		*version = sourceVersion(a.Root)
	}
	if !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`).MatchString(*version) {
		return fmt.Errorf("--version %q: want something like v1.2.3 or v1.2.3-rc.1", *version)
	}
	list := strings.Split(*archs, ",")
	for _, arch := range list {
		if arch != "amd64" && arch != "arm64" {
			return fmt.Errorf("--arch %q: want amd64, arm64 or both", arch)
		}
	}
	chosen := map[string]string{}
	for dir := range strings.SplitSeq(*only, ",") {
		name, ok := programs[dir]
		if !ok {
			return fmt.Errorf("--programs %q: there is no %q; want some of operator,backup-operator,restore-operator", *only, dir)
		}
		chosen[dir] = name
	}
	if *loadIt {
		if _, _, err := a.running(); err != nil {
			return err
		}
		if !slices.Contains(list, runtime.GOARCH) {
			list = append(list, runtime.GOARCH)
		}
	}
	for _, arch := range list {
		file := filepath.Join(*dist, fmt.Sprintf("etcd-operator-%s-linux-%s.tar", *version, arch))
		if err := a.operatorImage(ctx, file, arch, *version, chosen, !*loadIt); err != nil {
			return err
		}
		a.say("Wrote %s", file)
		if *loadIt && arch == runtime.GOARCH {
			if err := a.load(ctx, []string{file}); err != nil {
				return err
			}
		}
	}
	return nil
}

// operatorImage compiles the programs and writes their image.
func (a *App) operatorImage(ctx context.Context, file, arch, version string, programs map[string]string, compressed bool) error {
	tmp, err := os.MkdirTemp("", "etcd-operator-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	sha := gitSHA(ctx, a.Root)
	// With the flags of the local Kubernetes' programs, shared packages are compiled once.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]s.Version=%[2]s -X %[1]s.GitSHA=%[3]s", versionPackage, version, sha),
		"-o", tmp + "/"}
	built := map[string]string{}
	for dir, name := range programs {
		args = append(args, "./cmd/"+dir)
		built[name] = filepath.Join(tmp, dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = a.Root
	cmd.Env = environ.Go(os.Environ(), arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the operators for %s: %w\n%s", arch, err, bytes.TrimSpace(out))
	}
	license := filepath.Join(a.Root, "LICENSE")
	if _, err := os.Stat(license); err != nil {
		license = ""
	}
	composed := archive.Operator(imageNames(version), arch, built, license, map[string]string{
		"org.opencontainers.image.title":       "etcd-operator",
		"org.opencontainers.image.description": "Operates etcd clusters on Kubernetes",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     version,
		"org.opencontainers.image.revision":    sha,
	})
	composed.Compressed = compressed
	return archive.Write(file, composed)
}

// imageNames gives a pre-release the name of its release too: the manifests in the tree use
// that name, so they work with it.
func imageNames(version string) []string {
	names := []string{"docker.io/" + imageName + ":" + version}
	if release, _, ok := strings.Cut(version, "-"); ok {
		names = append(names, "docker.io/"+imageName+":"+release)
	}
	return names
}

var versionLine = regexp.MustCompile(`(?m)^\s*(?:var\s+)?Version\s*=\s*"([^"]+)"`)

// sourceVersion reads the version of the source tree.
func sourceVersion(root string) string {
	files, err := filepath.Glob(filepath.Join(root, "internal", "version", "*.go"))
	if err != nil {
		return ""
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if m := versionLine.FindSubmatch(b); m != nil {
			return "v" + strings.TrimPrefix(string(m[1]), "v")
		}
	}
	return "v0.0.0-unversioned"
}

// gitSHA returns the commit, and marks a tree that differs from it. A tree without git has
// none.
func gitSHA(ctx context.Context, root string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	sha, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--", "cmd", "internal", "pkg", "go.mod", "go.sum"); err == nil && changed != "" {
		sha += "-dirty"
	}
	return sha
}

func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", program, err)
	}
	return path, nil
}
