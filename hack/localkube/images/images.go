// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images brings image archives into a node's containerd.
package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
)

// Import imports archives through containerd's socket, one after the other.
func Import(ctx context.Context, socket string, archives ...string) error {
	for _, a := range archives {
		if out, err := ctr(ctx, socket, "images", "import", a); err != nil {
			return fmt.Errorf("import %s: %w: %s", a, err, strings.TrimSpace(out))
		}
	}
	return nil
}

// ImportAll imports archives on several nodes at once.
func ImportAll(ctx context.Context, sockets []string, archives []string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range sockets {
		g.Go(func() error { return Import(ctx, s, archives...) })
	}
	return g.Wait()
}

// List returns the names of the images that a node has.
func List(ctx context.Context, socket string) ([]string, error) {
	out, err := ctr(ctx, socket, "images", "list", "-q")
	if err != nil {
		return nil, fmt.Errorf("list images: %w: %s", err, strings.TrimSpace(out))
	}
	names := strings.Fields(out)
	// The CRI plugin names each image by its ID as well.
	names = slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "sha256:") })
	slices.Sort(names)
	return names, nil
}

func ctr(ctx context.Context, socket string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"-a", socket, "-n", "k8s.io"}, args...)...)
	cmd.Env = environ.Bare(os.Environ())
	out, err := cmd.CombinedOutput()
	return string(out), err
}
