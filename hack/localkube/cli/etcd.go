// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/build"
)

// etcdHelp is the help of the flag that names releases.
const etcdHelp = "releases of etcd, separated by commas, such as 3.6,3.7; or all"

// releases returns the components of etcd that a flag names, and whether it names all.
func releases(list string) (names []string, all bool, err error) {
	if list == "all" {
		return build.Etcds(), true, nil
	}
	for release := range strings.SplitSeq(list, ",") {
		name := "etcd-" + release
		if !slices.Contains(build.Etcds(), name) {
			return nil, false, fmt.Errorf("--etcd %q: want all, or some of %s", list, strings.ReplaceAll(strings.Join(slices.Sorted(slices.Values(build.Etcds())), ","), "etcd-", ""))
		}
		names = append(names, name)
	}
	return names, false, nil
}

// etcdOnly builds the releases of etcd for tests that start members themselves. It prints a
// line for each: its version, and the directory of etcd, etcdctl and etcdutl. Debian's, which
// is older, has no etcdutl.
func etcdOnly(ctx context.Context, a *App, args []string) error {
	if err := parse(a.flags("etcd", "hack/kube etcd"), args, 0); err != nil {
		return err
	}
	var out io.Writer
	out, a.Stdout = a.Stdout, a.Stderr // of progress
	unlock, err := a.lockCache(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	built, err := a.builder().Build(ctx, build.Etcds()...)
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
