// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
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
	"github.com/etcd-operator/etcd-operator/hack/localkube/operatorimage"
)

const imageHelp = `hack/image [flags]

Builds the operator's image, without a container engine, and writes an archive
for each architecture into dist/: containerd, docker, podman and kind load it.

Flags:`

// allPrograms are the directories below cmd of the image's programs. The etcd operator needs the
// launcher: its members run it.
const allPrograms = "operator,launcher,backup-operator,restore-operator"

func image(ctx context.Context, a *App, args []string) error {
	f := a.flags("image", imageHelp)
	archs := f.String("arch", runtime.GOARCH, "architectures, separated by commas: amd64, arm64")
	version := f.String("version", "", "version, such as v1.2.3 (that of internal/version)")
	dist := f.String("dist", filepath.Join(a.Root, "dist"), "directory for the archives")
	only := f.String("programs", allPrograms, "directories below cmd whose programs the image gets, separated by commas: fewer are built sooner")
	loadIt := f.Bool("load", false, "import the archive of this machine's architecture into the local Kubernetes, and don't compress it")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	if *version == "" {
		*version = sourceVersion(a.Root)
	}
	if err := operatorimage.CheckVersion(*version); err != nil {
		return err
	}
	list := strings.Split(*archs, ",")
	for _, arch := range list {
		if arch != "amd64" && arch != "arm64" {
			return fmt.Errorf("--arch %q: want amd64, arm64 or both", arch)
		}
	}
	chosen := strings.Split(*only, ",")
	for _, dir := range chosen {
		if operatorimage.Programs[dir] == "" {
			return fmt.Errorf("--programs %q: there is no %q; want some of %s", *only, dir, allPrograms)
		}
	}
	if *loadIt {
		if _, _, err := a.running(); err != nil {
			return err
		}
		if !slices.Contains(list, runtime.GOARCH) {
			list = append(list, runtime.GOARCH)
		}
	}
	source := operatorimage.Source{Root: a.Root, Version: *version, Commit: gitSHA(ctx, a.Root)}
	for _, arch := range list {
		file := filepath.Join(*dist, fmt.Sprintf("etcd-operator-%s-linux-%s.tar", *version, arch))
		if err := writeImage(ctx, source, file, arch, chosen, !*loadIt); err != nil {
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

// writeImage compiles the programs and writes their image.
func writeImage(ctx context.Context, source operatorimage.Source, file, arch string, programs []string, compressed bool) error {
	tmp, err := os.MkdirTemp("", "etcd-operator-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := source.Build(ctx, "linux", arch, tmp, programs...); err != nil {
		return err
	}
	composed := source.Image(arch, tmp, programs...)
	composed.Names = imageNames(source.Version)
	composed.Compressed = compressed
	return archive.Write(file, composed)
}

// imageNames gives a pre-release the name of its release too: the manifests in the tree use
// that name, so they work with it.
func imageNames(version string) []string {
	names := []string{operatorimage.Repository + ":" + version}
	if release, _, ok := strings.Cut(version, "-"); ok {
		names = append(names, operatorimage.Repository+":"+release)
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
