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

// NameByDigest gives each image of a node a second name, by its digest, as an image that
// was pulled has. It returns the digests by the names with tags.
func NameByDigest(ctx context.Context, socket string) (map[string]string, error) {
	out, err := ctr(ctx, socket, "images", "list")
	if err != nil {
		return nil, fmt.Errorf("list images: %w: %s", err, strings.TrimSpace(out))
	}
	digests := tagged(out)
	for name, digest := range digests {
		second := name[:strings.LastIndex(name, ":")] + "@" + digest
		if strings.Contains(out, second+" ") {
			continue
		}
		if out, err := ctr(ctx, socket, "images", "tag", name, second); err != nil && !strings.Contains(out, "already exists") { // of two tags
			return nil, fmt.Errorf("name %s by its digest: %w: %s", name, err, strings.TrimSpace(out))
		}
	}
	return digests, nil
}

// tagged takes the digests of all images with a tag out of what ctr lists.
func tagged(list string) map[string]string {
	digests := map[string]string{}
	for line := range strings.Lines(list) {
		// REF TYPE DIGEST …
		fields := strings.Fields(line)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "sha256:") || strings.Contains(fields[0], "sha256:") {
			continue
		}
		digests[fields[0]] = fields[2]
	}
	return digests
}

func ctr(ctx context.Context, socket string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"-a", socket, "-n", "k8s.io"}, args...)...)
	cmd.Env = environ.Bare(os.Environ())
	out, err := cmd.CombinedOutput()
	return string(out), err
}
