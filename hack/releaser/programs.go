// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/etcd-operator/etcd-operator/hack/localkube/operatorimage"
)

// plugin is the directory below cmd of the plugin of kubectl, and its name.
const plugin = "kubectl-etcd"

// A program is a compiled program of the release.
type program struct {
	directory string // below cmd
	platform  platform
	file      string
}

// name is the name that the program has for users.
func (p program) name() string {
	if name := operatorimage.Programs[p.directory]; name != "" {
		return name
	}
	return p.directory
}

// build compiles all programs into a directory, one platform after the other.
func (r *release) build(ctx context.Context, directory string, out io.Writer) ([]program, error) {
	var all []platform
	for _, arch := range r.archs {
		all = append(all, platform{"linux", arch})
	}
	for _, p := range r.plugins {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	var programs []program
	for _, p := range all {
		var names []string
		if p.os == "linux" && slices.Contains(r.archs, p.arch) {
			names = append(names, r.operators...)
		}
		if slices.Contains(r.plugins, p) {
			names = append(names, plugin)
		}
		fmt.Fprintf(out, "Building for %s\n", p)
		target := filepath.Join(directory, p.os+"-"+p.arch)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return nil, err
		}
		if err := r.source.Build(ctx, p.os, p.arch, target, names...); err != nil {
			return nil, err
		}
		suffix := ""
		if p.os == "windows" {
			suffix = ".exe"
		}
		for _, name := range names {
			programs = append(programs, program{name, p, filepath.Join(target, name+suffix)})
		}
	}
	return programs, nil
}
