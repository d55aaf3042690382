// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keeper is the process outside the cluster's namespaces. It creates them, links them
// to the host, and removes every trace when they end. If it is killed, the kernel ends the
// cluster with it, and Clean removes the rest in the next command.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/cgroup"
	"github.com/etcd-operator/etcd-operator/hack/localkube/cluster"
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
	"github.com/etcd-operator/etcd-operator/hack/localkube/limits"
	"github.com/etcd-operator/etcd-operator/hack/localkube/mountpoint"
	"github.com/etcd-operator/etcd-operator/hack/localkube/network"
	"github.com/etcd-operator/etcd-operator/hack/localkube/nsinit"
	"github.com/etcd-operator/etcd-operator/hack/localkube/process"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
)

// Role is the argument with which this program acts as the keeper.
const Role = "__keeper"

// Descriptors that `up` hands over.
const (
	ReportFD = 3 // the supervisor's report goes here
	LeaseFD  = 4 // closed without a byte: `up` died before the cluster was ready
)

// cleanTimeout bounds the wait for processes that the kernel is killing.
const cleanTimeout = 30 * time.Second

// Run creates the cluster and keeps it until a signal, the end of the cluster's owner, or the
// end of the cluster itself. In the last case it saves the logs in failedLogs.
func Run(ctx context.Context, state string, forPID int, failedLogs string) (err error) {
	// The kernel kills the cluster when the thread that created it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	c, err := instance.ReadConfig(state)
	if err != nil {
		return err
	}
	report, lease := os.NewFile(ReportFD, "report"), os.NewFile(LeaseFD, "lease")
	defer func() {
		// The end of ctx must not end the cleanup.
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		err = errors.Join(err, keepLogs(err, c.Instance, failedLogs), Clean(clean, c.Instance), removeStaleLock(c.Lock()))
	}()
	record := instance.Record{Started: time.Now(), ForPID: forPID}
	if record.Keeper, err = process.Identify(os.Getpid()); err != nil {
		return err
	}
	if err := c.WriteRecord(record); err != nil {
		return err
	}
	if err := enterCgroup(c.Instance); err != nil {
		return err
	}
	if err := limits.Host().Raise(); err != nil {
		return err
	}
	child, err := nsinit.Start(ctx, os.Stdout, []*os.File{report}, cluster.Role, c.State)
	if err != nil {
		return err
	}
	report.Close()
	if record.Init, err = process.Identify(child.Cmd.Process.Pid); err != nil {
		return err
	}
	if err := c.WriteRecord(record); err != nil {
		return err
	}
	if err := network.AttachHost(ctx, c.Instance, record.Init.PID); err != nil {
		return err
	}
	if err := child.Proceed(); err != nil {
		return err
	}
	return watch(ctx, child, lease, forPID)
}

// keepLogs saves the logs of a failed cluster from removal.
func keepLogs(failure error, i instance.Instance, to string) error {
	if failure == nil || errors.Is(failure, errAbandoned) {
		return nil
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(i.Path("logs")))
}

// removeStaleLock removes the lock file of a killed `up`. If a command holds the lock, it
// removes the file itself.
func removeStaleLock(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	return os.Remove(path)
}

// errAbandoned says that nobody waits for the cluster any more.
var errAbandoned = errors.New("`up` ended before the cluster was ready")

// enterCgroup moves the keeper, and with it the cluster, to a cgroup of its own: it must
// outlive the cgroup of the command that started it.
func enterCgroup(i instance.Instance) error {
	system := i.Cgroup() + "/system"
	if err := cgroup.Create(system); err != nil {
		return err
	}
	// Without it, two compilers beside an etcd take so much that requests to it time out.
	if err := cgroup.Prefer(i.Cgroup()); err != nil {
		return err
	}
	return cgroup.Enter(system, os.Getpid())
}

// watch returns when the cluster must end.
func watch(ctx context.Context, child *nsinit.Child, lease io.Reader, forPID int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reasons := make(chan error, 3)
	go func() {
		err := child.Cmd.Wait()
		reasons <- fmt.Errorf("the cluster's supervisor ended: %w", err)
	}()
	go func() {
		if n, _ := lease.Read(make([]byte, 1)); n == 0 {
			reasons <- errAbandoned
		}
	}()
	if forPID != 0 {
		p, err := process.Identify(forPID)
		if err != nil {
			return fmt.Errorf("the process that the cluster is for: %w", err)
		}
		go func() {
			if process.Wait(ctx, p) == nil {
				reasons <- nil
			}
		}()
	}
	select {
	case err := <-reasons:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Clean ends the cluster, if it runs, and removes all that it has on the machine. It succeeds
// if there is nothing.
func Clean(ctx context.Context, i instance.Instance) error {
	if err := CheckState(i); err != nil {
		return err
	}
	if r, err := i.ReadRecord(); err == nil && r.Init.PID != 0 {
		switch err := process.Signal(r.Init, unix.SIGKILL); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return err
		default:
			if err := process.Wait(ctx, r.Init); err != nil {
				return fmt.Errorf("wait until the cluster's processes are gone: %w", err)
			}
		}
	}
	if err := network.DetachHost(ctx, i); err != nil {
		return err
	}
	if cgroup.Exists(i.Cgroup()) {
		if r, err := i.ReadRecord(); err == nil && r.Keeper.PID == os.Getpid() {
			if err := cgroup.Enter("/", os.Getpid()); err != nil {
				return err
			}
		}
		if err := cgroup.Remove(ctx, i.Cgroup()); err != nil {
			return err
		}
	}
	if err := limits.Host().Restore(othersRun); err != nil {
		return err
	}
	if err := removeState(i); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return mountpoint.Remove(render.KubeletRoot)
}

// othersRun reports whether another instance exists: each has a cgroup.
func othersRun() (bool, error) {
	groups, err := cgroup.List(instance.CgroupPrefix)
	return len(groups) > 0, err
}
