// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cluster"
	"github.com/etcd-operator/etcd-operator/hack/localkube/images"
	"github.com/etcd-operator/etcd-operator/hack/localkube/slowdisk"
)

// commandTimeout bounds a command that changes a running cluster.
const commandTimeout = 2 * time.Minute

// diskCommand sets how long fsyncs take.
func diskCommand(_ context.Context, a *App, args []string) error {
	f := a.flags("disk", "hack/kube disk NODE DIRECTORY TIME")
	if err := parse(f, args, 3); err != nil {
		return err
	}
	node, directory := f.Arg(0), f.Arg(1)
	takes, err := time.ParseDuration(f.Arg(2))
	if err != nil || takes < 0 {
		return fmt.Errorf("how long an fsync takes is a time such as 200ms, and not %q", f.Arg(2))
	}
	if filepath.Base(directory) != directory || directory == "." || directory == ".." {
		return fmt.Errorf("the name of a directory holds no slash: %q", directory)
	}
	c, _, err := a.running()
	if err != nil {
		return err
	}
	if !c.SlowDisks {
		return errors.New("its disks can't be slowed down: `hack/kube down`, then `hack/kube up --slow-disks`")
	}
	if err := slowdisk.SetDelay(c.Delays(node), directory, takes); err != nil {
		return fmt.Errorf("slow down a disk of %s: %w", node, err)
	}
	a.say("fsyncs below %s of %s take %s", directory, node, takes)
	return nil
}

// componentCommand signals a program of the control plane.
func componentCommand(ctx context.Context, a *App, args []string) error {
	f := a.flags("component", "hack/kube component stop|continue|kill NAME")
	if err := parse(f, args, 2); err != nil {
		return err
	}
	if _, _, err := a.running(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if err := a.ask(ctx, http.MethodPost, "/components/"+f.Arg(1)+"/"+f.Arg(0), &struct{}{}); err != nil {
		return err
	}
	a.say("%s: %s", f.Arg(1), f.Arg(0))
	return nil
}

// digestsCommand names images by their digests, on all nodes that run.
func digestsCommand(ctx context.Context, a *App, args []string) error {
	if err := parse(a.flags("digests", "hack/kube digests"), args, 0); err != nil {
		return err
	}
	c, _, err := a.running()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var st cluster.Status
	if err := a.ask(ctx, http.MethodGet, "/status", &st); err != nil {
		return err
	}
	digests := map[string]string{}
	for _, n := range st.Nodes {
		if n.State == "killed" {
			continue
		}
		of, err := images.NameByDigest(ctx, c.ContainerdSocket(n.Name))
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		maps.Copy(digests, of)
	}
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		a.say("%s %s", name, digests[name])
	}
	return nil
}
