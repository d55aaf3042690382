// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package disk creates the initial disk of a node: a containerd directory that already
// contains the images. It is created once and kept. Nodes get links to its files, which costs
// no time and no space.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etcd-operator/etcd-operator/hack/localkube/images"
	"github.com/etcd-operator/etcd-operator/hack/localkube/nsinit"
	"github.com/etcd-operator/etcd-operator/hack/localkube/wait"
)

// Role is the argument with which this program fills a containerd directory.
const Role = "__disk"

// startTimeout bounds the start of containerd.
const startTimeout = time.Minute

// Make creates a containerd directory with the images of the archives. It appears when it is
// complete. A containerd in namespaces of its own fills it, and leaves nothing behind, however
// this ends.
func Make(ctx context.Context, dir string, archives []string) error {
	runtime.LockOSThread() // see nsinit.Start
	defer runtime.UnlockOSThread()

	tmp := dir + ".partial"
	if err := errors.Join(os.RemoveAll(tmp), os.MkdirAll(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	var out strings.Builder
	child, err := nsinit.Start(ctx, &out, nil, append([]string{Role, tmp}, archives...)...)
	if err != nil {
		return err
	}
	if err := errors.Join(child.Proceed(), child.Cmd.Wait()); err != nil {
		return fmt.Errorf("import images into %s: %w\n%s", tmp, err, out.String())
	}
	return os.Rename(tmp, dir)
}

// Fill is Make from inside the namespaces.
func Fill(ctx context.Context, dir string, archives []string) error {
	const socket = "/run/fill.sock"
	config := fmt.Sprintf("version = 2\nroot = %q\nstate = \"/run/containerd\"\n"+
		"disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = %q\n", dir, socket)
	if err := os.WriteFile("/run/fill.toml", []byte(config), 0o644); err != nil {
		return err
	}
	daemon := exec.CommandContext(ctx, "containerd", "--config", "/run/fill.toml", "--log-level", "warn")
	daemon.Stdout, daemon.Stderr = os.Stderr, os.Stderr
	daemon.Cancel = func() error { return daemon.Process.Signal(syscall.SIGTERM) }
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	start, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := wait.Until(start, "containerd", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err == nil {
		err = images.Import(ctx, socket, archives...)
	}
	err = errors.Join(err, daemon.Process.Signal(syscall.SIGTERM))
	// The context ends containerd; its exit status does not matter.
	_ = daemon.Wait()
	return err
}

// Clone gives a node its own copy. Contents of images never change in place, so Clone links
// them. It copies databases.
func Clone(from, to string) error {
	tmp := to + ".partial"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		return clone(path, filepath.Join(tmp, rel), entry)
	})
	if err != nil {
		return fmt.Errorf("clone %s: %w", from, err)
	}
	return os.Rename(tmp, to)
}

func clone(from, to string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	switch {
	case entry.IsDir():
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		return copyOwnerAndMode(to, info)
	case info.Mode().IsRegular() && strings.HasSuffix(from, ".db"):
		return copyFile(from, to, info)
	default:
		err := os.Link(from, to)
		if errors.Is(err, unix.EXDEV) && info.Mode().IsRegular() {
			return copyFile(from, to, info)
		}
		if errors.Is(err, unix.EXDEV) && info.Mode()&fs.ModeSymlink != 0 {
			return copyLink(from, to)
		}
		return err
	}
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return copyOwnerAndMode(to, info)
}

func copyLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	return os.Symlink(target, to)
}

// copyOwnerAndMode sets the mode last: a change of owner clears bits of it.
func copyOwnerAndMode(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := os.Lchown(path, int(st.Uid), int(st.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(path, info.Mode())
}
