// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian installs or unpacks the few programs that come from Debian
// instead of Go modules.
package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// A Package and a file that shows that it is installed.
type Package struct{ Name, File string }

// Needed are the packages without which a local Kubernetes cannot run.
func Needed() []Package {
	return []Package{
		{"containerd", "/usr/bin/containerd"},
		{"crun", "/usr/bin/crun"},
		{"containernetworking-plugins", "/usr/lib/cni/ptp"},
		{"nftables", "/usr/sbin/nft"},
		{"iproute2", "/usr/sbin/ip"},
		{"conntrack", "/usr/sbin/conntrack"},
		{"busybox-static", "/bin/busybox"},
		{"ca-certificates", "/etc/ssl/certs/ca-certificates.crt"},
		{"git", "/usr/bin/git"},
	}
}

// Ensure installs missing packages. It does not start their services: the local Kubernetes
// runs its own.
func Ensure(ctx context.Context, out io.Writer, packages []Package) error {
	var missing []string
	for _, p := range packages {
		if _, err := os.Stat(p.File); err != nil {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing: %s; there is no apt-get to install them: install them by hand, or use a Debian machine", strings.Join(missing, ", "))
	}
	fmt.Fprintf(out, "Installing from Debian: %s\n", strings.Join(missing, ", "))
	restore, err := forbidServices()
	if err != nil {
		return err
	}
	defer restore()
	// What is installed stays, such as Docker's containerd, with which Debian's conflicts.
	install := append([]string{"install", "-y", "--no-install-recommends", "--no-remove"}, missing...)
	if err := apt(ctx, "", install...); err != nil {
		// The package lists may be old, or absent on a fresh machine.
		if err := apt(ctx, "", "update"); err != nil {
			return err
		}
		if err := apt(ctx, "", install...); err != nil {
			return err
		}
	}
	return nil
}

// policyFile keeps maintainer scripts from starting services.
const policyFile = "/usr/sbin/policy-rc.d"

func forbidServices() (restore func(), err error) {
	f, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("keep apt-get from starting services: %w", err)
	}
	// One that a kill leaves behind forbids nothing.
	_, err = fmt.Fprintf(f, "#!/bin/sh\n# Written by hack/kube, for as long as it installs packages.\nkill -0 %d 2>/dev/null || exit 0\nexit 101\n", os.Getpid())
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(policyFile))
	}
	return func() { os.Remove(policyFile) }, nil
}

// Unpack downloads packages and unpacks them into a directory, which appears when it is
// complete. It installs nothing.
func Unpack(ctx context.Context, dir string, packages ...string) error {
	tmp := dir + ".partial"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	download := append([]string{"-o", "APT::Sandbox::User=root", "download"}, packages...)
	if err := apt(ctx, tmp, download...); err != nil {
		if err := apt(ctx, "", "update"); err != nil {
			return err
		}
		if err := apt(ctx, tmp, download...); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if out, err := exec.CommandContext(ctx, "dpkg", "-x", deb, tmp).CombinedOutput(); err != nil {
			return fmt.Errorf("unpack %s: %w: %s", deb, err, out)
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return os.Rename(tmp, dir)
}

// lockWait is how many seconds apt-get waits for another one: a fresh machine upgrades itself.
const lockWait = "DPkg::Lock::Timeout=300"

// apt runs apt-get until it ends. An interrupted one ends before dpkg begins, or after dpkg: a
// kill would leave packages half installed. So nothing ends it with the process group of this
// process, and its output is a file: dpkg would die of a pipe that nobody reads any more.
func apt(ctx context.Context, dir string, args ...string) error {
	output, err := os.CreateTemp("", "apt-get")
	if err != nil {
		return err
	}
	defer output.Close()
	defer os.Remove(output.Name())
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", lockWait}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = dir
	// Who ends this process may remove its TMPDIR.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "TMPDIR=/tmp")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		out, _ := os.ReadFile(output.Name())
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return nil
}
