// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node is a node from inside: it runs in the node's namespaces like a machine's boot,
// and keeps containerd, kubelet and kube-proxy running.
package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/localkube/daemon"
	"github.com/etcd-operator/etcd-operator/hack/localkube/disk"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/kubeapi"
	"github.com/etcd-operator/etcd-operator/hack/localkube/mountpoint"
	"github.com/etcd-operator/etcd-operator/hack/localkube/network"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
	"github.com/etcd-operator/etcd-operator/hack/localkube/slowdisk"
	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// Role is the argument with which this program acts as a node.
const Role = "__node"

// Kubelet is a node's directory for its kubelet's data: the directories of its pods.
const Kubelet = "kubelet"

// startTimeout bounds how long a node waits for containerd or the API server.
const startTimeout = 3 * time.Minute

// Run boots the node and blocks until ctx ends.
func Run(ctx context.Context, state, name string) error {
	c, err := instance.ReadConfig(state)
	if err != nil {
		return err
	}
	number, ok := instance.NodeNumber(name)
	if !ok {
		return fmt.Errorf("%q is not the name of a node", name)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := mounts(c, name); err != nil {
		return err
	}
	if err := network.SetUpNode(ctx, c, number); err != nil {
		return err
	}
	if err := cgroup.Create(c.NodeCgroup(name)); err != nil {
		return err
	}
	if err := files(c, number); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	run := func(program, path string, args ...string) {
		d := &daemon.Daemon{Name: program, Path: path, Args: args, Log: c.Log(program + "-" + name)}
		g.Go(func() error { return d.Run(ctx) })
	}
	// A killed node's socket would look like a live one.
	if err := os.Remove(c.ContainerdSocket(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if _, err := os.Stat(c.NodeDir(name, "containerd")); errors.Is(err, os.ErrNotExist) {
		if err := disk.Clone(c.Containerd, c.NodeDir(name, "containerd")); err != nil {
			return err
		}
	}
	run("containerd", "containerd", "--config", c.NodeDir(name, "containerd.toml"))
	g.Go(func() error {
		start, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		if err := prepare(start, c, name); err != nil {
			return err
		}
		run("kubelet", filepath.Join(c.Kubernetes, "kubelet"), render.Kubelet(c, number)...)
		run("kube-proxy", filepath.Join(c.Kubernetes, "kube-proxy"), "--config", c.NodeDir(name, "kube-proxy.yaml"))
		return nil
	})
	return g.Wait()
}

// prepare waits for the kubelet's dependencies: containerd and an API server.
func prepare(ctx context.Context, c instance.Config, name string) error {
	socket := c.ContainerdSocket(name)
	err := wait.Until(ctx, "containerd of "+name, func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(c.Path(render.CACert))
	if err != nil {
		return err
	}
	api, err := kubeapi.New(c.APIServer(), ca, nil, nil)
	if err != nil {
		return err
	}
	return wait.Until(ctx, "the API server", api.Ready)
}

// files writes the configurations. The certificates came from the supervisor.
func files(c instance.Config, number int) error {
	name := instance.NodeName(number)
	kubeProxy := render.KubeProxy(c, name, c.Path("kubeconfigs/proxy"))
	for path, content := range map[string]string{
		"containerd.toml":           render.Containerd(c, name),
		"cni/10-localkube.conflist": render.CNI(c, number),
		// A directory for all registries: containerd's docs/hosts.md.
		"registries/_default/hosts.toml": render.Registries(),
		"resolv.conf":                    render.ResolvConf(c),
		"kubelet.yaml":                   render.KubeletConfig(c, number),
		"kube-proxy.yaml":                kubeProxy,
	} {
		file := c.NodeDir(name, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// slowDisks puts the pods' directories and volumes on a file system with adjustable fsyncs.
func slowDisks(c instance.Config, name string) error {
	if !c.SlowDisks {
		return nil
	}
	for inside, own := range map[string]string{
		filepath.Join(render.KubeletRoot, "pods"): filepath.Join(Kubelet, "pods"),
		render.VolumeRoot(c):                      render.Volumes,
	} {
		dir := c.NodeDir(name, own)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// A mount at one directory would also appear at the other, and the file system would
		// read its files from itself. A private mount stays where it is.
		parent := filepath.Dir(inside)
		if inside == render.VolumeRoot(c) {
			parent = inside
		}
		for _, group := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
			if err := unix.Mount("", parent, "", group, ""); err != nil {
				return fmt.Errorf("give the mount at %s a group of its own: %w", parent, err)
			}
		}
		if err := slowdisk.Mount(dir, inside, c.Delays(name)); err != nil {
			return err
		}
	}
	return nil
}

// kernelSettings are machine-wide settings that a kubelet changes if they differ. A node must
// not: files with the right values hide the real ones.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mounts mounts the node's own directories at the paths that its programs expect, visible to
// this node only, and names the one for temporary files.
func mounts(c instance.Config, name string) error {
	for inside, own := range map[string]string{
		render.KubeletRoot:   Kubelet,
		"/var/log":           "log",
		render.VolumeRoot(c): render.Volumes,
	} {
		if err := mountpoint.Bind(c.NodeDir(name, own), inside); err != nil {
			return err
		}
	}
	if err := slowDisks(c, name); err != nil {
		return err
	}
	// Files of killed programs, such as crun's, go with the node.
	if err := os.Setenv("TMPDIR", "/run"); err != nil {
		return err
	}
	// Some machines have the tree of cgroups version 2 beside those of version 1. crun refuses
	// it if it contains a controller. Nothing here uses it.
	if err := unix.Unmount("/sys/fs/cgroup/unified", unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount the cgroups of version 2: %w", err)
	}
	if err := os.MkdirAll("/run/kernel-settings", 0o755); err != nil {
		return err
	}
	for setting, value := range kernelSettings {
		target := filepath.Join("/proc/sys", setting)
		if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
			continue
		}
		file := filepath.Join("/run/kernel-settings", filepath.Base(filepath.Dir(setting))+"-"+filepath.Base(setting))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s on %s: %w", file, target, err)
		}
	}
	return nil
}
