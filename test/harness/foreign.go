// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NewForeign creates a namespace with another operator of our API group in it, from a manifest
// for kubectl. The namespace's default service account has the rights of our operator; what else
// the operator needs is in the manifest.
func NewForeign(t testing.TB, manifest string) *Namespace {
	t.Helper()
	path, err := filepath.Abs(manifest)
	if err != nil {
		t.Fatal(err)
	}
	n := newNamespace(t, false)
	n.grant()
	kubectl := func(ctx context.Context, args ...string) error {
		out, err := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", n.Name}, args...)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	t.Cleanup(func() { // also what is outside of the namespace
		ctx, cancel := later(t.Context(), time.Minute)
		defer cancel()
		if err := kubectl(ctx, "delete", "-f", path, "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	for _, args := range [][]string{
		{"apply", "-f", path},
		{"wait", "deployment", "--all", "--for=condition=Available", "--timeout=3m"},
	} {
		if err := kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	n.record.watchClusters()
	return n
}

// Serves checks pods and members as Settled does, and ignores the status, which another operator
// may not fill in.
func (c *Cluster) Serves(ctx context.Context, gone ...*corev1.Pod) error {
	if err := c.podsSettled(gone); err != nil {
		return err
	}
	_, err := c.membersSettled(ctx)
	return err
}
