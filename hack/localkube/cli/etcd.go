// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/build"
)

// etcdOnly builds the releases of etcd for tests that start members themselves, and
// prints a line for each: its version, and the directory of etcd, etcdctl and
// etcdutl. Debian's, which is older, has no etcdutl.
func etcdOnly(ctx context.Context, a *App, args []string) error {
	if err := parse(a.flags("etcd", "hack/kube etcd"), args, 0); err != nil {
		return err
	}
	var out io.Writer
	out, a.Stdout = a.Stdout, a.Stderr // what is said meanwhile
	unlock, err := a.lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	built, err := a.builder().Etcd(ctx)
	if err != nil {
		return err
	}
	old, err := a.debianEtcd(ctx)
	if err != nil {
		return err
	}
	if old != "" {
		version, err := etcdVersion(ctx, old)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.TrimPrefix(version, "v"), old)
	}
	for _, name := range []string{build.Etcd35, build.Etcd36, build.Etcd37} {
		fmt.Fprintln(out, strings.TrimPrefix(built[name].Version, "v"), built[name].Dir)
	}
	return nil
}
