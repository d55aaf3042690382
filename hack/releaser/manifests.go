// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// manifestSources are what hack/manifests reads and writes.
var manifestSources = []string{"charts", "deploy", "example", "internal/version", "pkg/apis", "doc/user/walkthrough.md", "Dockerfile"}

// writeManifests writes the files that install the operators. They name the image by its tag
// and by its digest. The chart names it by the tag, which a user replaces together with the
// repository; image.digest of its values is for those who want a digest.
func (r *release) writeManifests(ctx context.Context, image image, work, directory string) error {
	if err := r.nameVersion(ctx, work); err != nil {
		return err
	}
	for _, name := range []string{"install.yaml", "install-cluster-wide.yaml"} {
		text, err := os.ReadFile(filepath.Join(work, "deploy", name))
		if err != nil {
			return err
		}
		if text, err = pin(text, image); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o644); err != nil {
			return err
		}
	}
	chart, err := entriesOf(filepath.Join(work, "charts", "etcd-operator"), "etcd-operator")
	if err != nil {
		return err
	}
	// The name that helm package gives.
	name := "etcd-operator-" + strings.TrimPrefix(r.source.Version, "v") + ".tgz"
	return writeFile(filepath.Join(directory, name), func(w *bytes.Buffer) error { return tarGz(w, chart, r.time) })
}

// nameVersion copies the sources of the manifests into a directory, and writes the version of
// the release into them.
func (r *release) nameVersion(ctx context.Context, work string) error {
	for _, path := range manifestSources {
		if err := copyAll(filepath.Join(r.source.Root, path), filepath.Join(work, path)); err != nil {
			return fmt.Errorf("copy %s: %w", path, err)
		}
	}
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", ".", "-version", r.source.Version, work)
	cmd.Dir = filepath.Join(r.source.Root, "hack", "manifests")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write the version into the manifests: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}

var (
	imageLine = regexp.MustCompile(`(?m)^ +image: (.*)$`)
	workload  = regexp.MustCompile(`(?m)^kind: Deployment$`)
)

// pin adds the digest to each image of a manifest. All are the operators'.
func pin(manifest []byte, image image) ([]byte, error) {
	lines, workloads := imageLine.FindAllSubmatch(manifest, -1), len(workload.FindAll(manifest, -1))
	if len(lines) != workloads || workloads == 0 {
		return nil, fmt.Errorf("%d images in %d Deployments, want one in each", len(lines), workloads)
	}
	for _, line := range lines {
		if string(line[1]) != image.name() {
			return nil, fmt.Errorf("it names the image %s, want %s", line[1], image.name())
		}
	}
	return bytes.ReplaceAll(manifest, []byte("image: "+image.name()+"\n"), []byte("image: "+image.String()+"\n")), nil
}
