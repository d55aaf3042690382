// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/build"
	"github.com/etcd-operator/etcd-operator/hack/localkube/debian"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/keeper"
	"github.com/etcd-operator/etcd-operator/hack/localkube/network"
	"github.com/etcd-operator/etcd-operator/hack/localkube/process"
	"github.com/etcd-operator/etcd-operator/hack/localkube/progress"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
)

// downTimeout bounds the wait for a keeper to clean up.
const downTimeout = time.Minute

func up(ctx context.Context, a *App, args []string) error {
	f := a.flags("up", "hack/kube up [flags]")
	nodes := f.Int("nodes", 3, "number of nodes")
	forPID := f.Int("for-pid", 0, "end everything as soon as the process with this ID is gone")
	grace := f.Duration("node-monitor-grace-period", 20*time.Second, "how long a silent node stays Ready")
	etcd := f.String("etcd", "all", etcdHelp+"; images of others are there if they are built")
	toleration := f.Int("pod-toleration-seconds", 300, "how long pods stay on a node that is not Ready, unless they say otherwise")
	kinds := strings.Join(slices.Sorted(maps.Keys(render.DNS)), ", ")
	dns := f.String("dns", render.FastDNS, "how long answers of the DNS are kept, also that there is no such name: "+kinds)
	slow := f.Bool("slow-disks", false, "put what pods write on a file system that hack/kube disk can slow down")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	_, known := render.DNS[*dns]
	names, all, err := releases(*etcd)
	switch {
	case err != nil:
		return err
	case *nodes < 1 || *nodes > instance.MaxNodes:
		return fmt.Errorf("--nodes %d: want 1 to %d", *nodes, instance.MaxNodes)
	case *grace < 10*time.Second:
		return fmt.Errorf("--node-monitor-grace-period %s: nodes report every 4 s, so less than 10s would fail healthy ones", *grace)
	case !known:
		return fmt.Errorf("--dns %s: want one of %s", *dns, kinds)
	case *toleration < 0:
		return fmt.Errorf("--pod-toleration-seconds %d: must not be negative", *toleration)
	}
	if *forPID != 0 {
		if _, err := process.Identify(*forPID); err != nil {
			return fmt.Errorf("--for-pid: %w", err)
		}
	}
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()

	if r, err := a.Instance.ReadRecord(); err == nil && process.Alive(r.Init) {
		return a.alreadyUp(*nodes, *dns, *slow)
	}
	if err := keeper.CheckState(a.Instance); err != nil {
		return err
	}
	config, err := a.prepare(ctx, names, all)
	if err != nil {
		return err
	}
	config.Nodes, config.NodeMonitorGracePeriod, config.PodTolerationSeconds, config.DNS = *nodes, *grace, *toleration, *dns
	config.SlowDisks = *slow
	if err := keeper.Clean(ctx, a.Instance); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if err := network.CheckFree(ctx, a.Instance); err != nil {
		return err
	}
	return a.start(ctx, config, *forPID)
}

func (a *App) alreadyUp(nodes int, dns string, slow bool) error {
	c, err := instance.ReadConfig(a.Instance.State)
	if err != nil {
		return err
	}
	a.say("Already up with %s; `hack/kube status` shows more.", count(c.Nodes))
	if c.Nodes != nodes {
		a.say("For %s: `hack/kube down` first.", count(nodes))
	}
	if c.DNS != dns {
		a.say("Its DNS is %s. For %s: `hack/kube down` first.", c.DNS, dns)
	}
	if slow && !c.SlowDisks {
		a.say("Its disks can't be slowed down. For that: `hack/kube down` first.")
	}
	return nil
}

func count(nodes int) string {
	if nodes == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", nodes)
}

// prepare installs and builds what is missing: these releases of etcd, and Debian's if they
// are all releases.
func (a *App) prepare(ctx context.Context, etcds []string, all bool) (instance.Config, error) {
	c := instance.Config{Instance: a.Instance}
	if err := debian.Ensure(ctx, a.Stdout, debian.Needed()); err != nil {
		return c, err
	}
	unlock, err := a.lockCache(ctx)
	if err != nil {
		return c, err
	}
	defer unlock()
	built, err := a.builder().Build(ctx, append([]string{build.Kubernetes, build.Etcd36}, etcds...)...)
	if err != nil {
		return c, err
	}
	c.Kubernetes = built[build.Kubernetes].Dir
	c.Etcd = built[build.Etcd36].Dir
	archives, err := a.images(ctx, built, all)
	if err != nil {
		return c, err
	}
	c.Containerd, err = a.disk(ctx, archives)
	return c, err
}

func (a *App) builder() build.Builder {
	return build.Builder{
		Pins:  filepath.Join(a.Root, "hack", "localkube", "pins"),
		Cache: filepath.Join(a.Cache, "localkube"),
		Out:   a.Stdout,

		Kubernetes: a.Kubernetes,
	}
}

// start starts the keeper and waits until the cluster is ready. If it fails or is interrupted,
// the keeper removes everything.
func (a *App) start(ctx context.Context, c instance.Config, forPID int) error {
	began := time.Now()
	if err := os.MkdirAll(c.State, 0o755); err != nil {
		return err
	}
	// The settings come first: by them, a later command knows the directory.
	if err := c.Write(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Path("logs"), 0o755); err != nil {
		return err
	}
	if err := linkPrograms(c); err != nil {
		return err
	}
	log, err := os.Create(c.Log("keeper"))
	if err != nil {
		return err
	}
	defer log.Close()
	reportR, reportW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reportR.Close()
	leaseR, leaseW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer leaseW.Close()

	// The keeper outlives this command and its context.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/proc/self/exe", keeper.Role, c.State, strconv.Itoa(forPID), a.failedLogs())
	cmd.Args[0] = "localkube"
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{reportW, leaseR}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	a.say("Starting Kubernetes with %s", count(c.Nodes))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	reportW.Close()
	leaseR.Close()
	// Interrupted: end the lease, and the report ends with the cluster.
	stop := context.AfterFunc(ctx, func() { leaseW.Close() })
	err = progress.Read(reportR, func(step string) {
		a.say("  %-18s %5.1f s", step, time.Since(began).Seconds())
	})
	if stop() && err == nil {
		if _, err = leaseW.Write([]byte{1}); err == nil {
			a.say("Ready after %.1f s. Next:\n  eval \"$(hack/kube env)\"\n  kubectl get nodes", time.Since(began).Seconds())
			return cmd.Process.Release()
		}
	}
	leaseW.Close()
	_ = cmd.Wait() // its state shows how it ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("the local Kubernetes did not come up (keeper: %s); its logs are in %s\n%w", cmd.ProcessState, a.failedLogs(), err)
}

// failedLogs is where the logs of a failed start are kept.
func (a *App) failedLogs() string {
	return filepath.Join(a.Cache, "localkube", "failed-"+a.Instance.Name)
}

// linkPrograms collects what `hack/kube env` puts on PATH.
func linkPrograms(c instance.Config) error {
	bin := c.Path("bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.Symlink(filepath.Join(c.Kubernetes, "kubectl"), filepath.Join(bin, "kubectl")),
		os.Symlink(filepath.Join(c.Etcd, "etcdctl"), filepath.Join(bin, "etcdctl")),
		os.Symlink(filepath.Join(c.Etcd, "etcdutl"), filepath.Join(bin, "etcdutl")),
	)
}

func down(ctx context.Context, a *App, args []string) error {
	if err := parse(a.flags("down", "hack/kube down"), args, 0); err != nil {
		return err
	}
	unlock, err := a.lock()
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	_, statErr := os.Stat(a.Instance.State)
	if r, err := a.Instance.ReadRecord(); err == nil {
		switch err := process.Signal(r.Keeper, unix.SIGTERM); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return err
		default:
			if err := process.Wait(ctx, r.Keeper); err != nil {
				return fmt.Errorf("wait for the keeper (process %d) to clean up: %w", r.Keeper.PID, err)
			}
		}
	}
	// The keeper may have been killed before it was done, or long ago.
	if err := keeper.Clean(ctx, a.Instance); err != nil {
		return err
	}
	if os.IsNotExist(statErr) {
		a.say("Nothing was up.")
		return nil
	}
	a.say("Down: nothing is left.")
	return nil
}

func buildOnly(ctx context.Context, a *App, args []string) error {
	f := a.flags("build", "hack/kube build [--etcd LIST]")
	etcd := f.String("etcd", "all", etcdHelp)
	if err := parse(f, args, 0); err != nil {
		return err
	}
	names, all, err := releases(*etcd)
	if err != nil {
		return err
	}
	c, err := a.prepare(ctx, names, all)
	if err != nil {
		return err
	}
	a.say("Built. Programs:")
	for _, dir := range []string{c.Kubernetes, c.Etcd} {
		a.say("  %s", dir)
	}
	a.say("Image archives:")
	a.say("  %s", filepath.Join(a.Cache, "localkube", "images"))
	return nil
}
