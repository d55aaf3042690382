// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// hackKube runs hack/kube on the local Kubernetes, and returns what it printed. An error
// contains that too.
func (e *Env) hackKube(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(e.Root, "hack", "kube"), args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("hack/kube %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
