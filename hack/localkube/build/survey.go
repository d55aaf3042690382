// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// A package costs about its source's length, and a constant. A program costs its link. Only
// the ratios matter; they come from builds of Kubernetes.
const (
	packageCost = 8 << 10
	linkCost    = 8 << 20
)

// work is a build's work: bytes of source by import path.
type work map[string]int64

// survey lists the packages that a component's build will compile. It downloads the modules.
func (b Builder) survey(ctx context.Context, c Component, version string) (work, error) {
	args := []string{"-deps", "-json=ImportPath,Name,Dir,GoFiles,Stale"}
	for _, p := range c.Programs {
		args = append(args, p.Package)
	}
	cmd := b.command(ctx, c, "list", version, args...)
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w\n%s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("go list in %s: %w", cmd.Dir, err)
	}
	found := work{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Name, Dir string
			GoFiles               []string
			Stale                 bool
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode what go list says: %w", err)
		}
		if !p.Stale {
			continue
		}
		cost := int64(packageCost)
		if p.Name == "main" {
			cost += linkCost
		}
		for _, file := range p.GoFiles {
			if info, err := os.Stat(filepath.Join(p.Dir, file)); err == nil {
				cost += info.Size()
			}
		}
		found[p.ImportPath] = cost
	}
}
