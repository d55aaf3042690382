// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/operatorimage"
)

// project is where the source and the releases are.
const project = "https://github.com/etcd-operator/etcd-operator"

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var (
	// allOperators are the programs of the image, by their directories below cmd.
	allOperators = []string{"operator", "launcher", "backup-operator", "restore-operator"}
	// allArchs are the architectures of the image.
	allArchs = []string{"amd64", "arm64"}
	// allPlugins are the platforms of the plugin.
	allPlugins = []platform{
		{"darwin", "amd64"}, {"darwin", "arm64"},
		{"linux", "amd64"}, {"linux", "arm64"},
		{"windows", "amd64"}, {"windows", "arm64"},
	}
)

// A release is a version of the product, and all that its files depend on.
type release struct {
	source operatorimage.Source
	commit string // in full; source has the form of hack/image
	ref    string // the name by which a person chose the commit
	time   time.Time

	operators []string
	archs     []string
	plugins   []platform
}

var commits = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// check refuses a release that lacks something, and completes it.
func (r *release) check() error {
	if err := operatorimage.CheckVersion(r.source.Version); err != nil {
		return err
	}
	if !commits.MatchString(r.commit) {
		return fmt.Errorf("commit %q: want the hash of a commit in full", r.commit)
	}
	if r.source.Root == "" || r.ref == "" || r.time.Unix() <= 0 {
		return errors.New("want the source tree, the name of its commit, and the commit's time")
	}
	r.source.Commit = r.commit[:12]
	root, err := filepath.Abs(r.source.Root)
	r.source.Root = root
	return err
}

// write builds the programs and writes the release into a directory, which appears when it is
// complete.
func (r *release) write(ctx context.Context, directory string, out io.Writer) (err error) {
	if _, err := os.Lstat(directory); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists: remove it, or choose another directory with --out", directory)
	}
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "etcd-operator-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	partial, err := os.MkdirTemp(filepath.Dir(directory), filepath.Base(directory)+".partial.")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	programs, err := r.build(ctx, filepath.Join(work, "programs"), out)
	if err != nil {
		return err
	}
	if err := r.assemble(ctx, programs, filepath.Join(work, "manifests"), partial); err != nil {
		return err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return err
	}
	return os.Rename(partial, directory)
}

// assemble writes the files of the release, except the programs, into an empty directory. It
// uses another one for work.
func (r *release) assemble(ctx context.Context, programs []program, work, directory string) error {
	image, err := r.writeImage(programs, directory)
	if err != nil {
		return err
	}
	if err := r.writeManifests(ctx, image, work, directory); err != nil {
		return err
	}
	archives, err := r.writePlugins(programs, directory)
	if err != nil {
		return err
	}
	if err := r.writeKrew(archives, directory); err != nil {
		return err
	}
	if err := r.writeSBOM(programs, directory); err != nil {
		return err
	}
	if err := r.writeProvenance(image, directory); err != nil {
		return err
	}
	// Last: the sums cover all files.
	return writeSums(directory)
}
