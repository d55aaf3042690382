// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slowdisk shows a directory as a file system whose fsyncs take as long as a
// test wants. It needs no device, and a process that is killed leaves nothing hanging.
package slowdisk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sys/unix"
)

// look is how often an fsync that waits looks whether it still has to.
const look = 10 * time.Millisecond

// Mount shows dir at target until this process ends. The directory delays says how long
// fsyncs take: see SetDelay.
func Mount(dir, target, delays string) error {
	if err := os.MkdirAll(delays, 0o755); err != nil {
		return err
	}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return fmt.Errorf("stat %s: %w", dir, err)
	}
	root := &fs.LoopbackRoot{Path: dir, Dev: st.Dev}
	root.RootNode = &node{LoopbackNode: fs.LoopbackNode{RootData: root}, delays: delays}
	kernel, err := attach(dir, target)
	if err != nil {
		return fmt.Errorf("mount %s on %s: %w", dir, target, err)
	}
	// Nothing is cached: the provisioner of volumes works on dir itself.
	if _, err := fs.Mount(fmt.Sprintf("/dev/fd/%d", kernel), root.RootNode, &fs.Options{}); err != nil {
		return fmt.Errorf("serve %s at %s: %w", dir, target, err)
	}
	return nil
}

// attach mounts a file system that the kernel asks for by the descriptor. No child may
// inherit it: a pod that held it and waited for an fsync could not be killed.
func attach(dir, target string) (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", fd)
	if err := unix.Mount(dir, target, "fuse.slowdisk", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// A node is a file or directory.
type node struct {
	fs.LoopbackNode
	delays string
}

// WrapChild makes a node of a file or directory below.
func (n *node) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{LoopbackNode: fs.LoopbackNode{RootData: n.RootData}, delays: n.delays}
}

// Fsync takes its time first, as a disk does: also when the process that asked is killed.
func (n *node) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	path := n.Path(nil)
	for began := time.Now(); time.Since(began) < delay(n.delays, path); {
		timer := time.NewTimer(look)
		<-timer.C
	}
	if file, ok := f.(fs.FileFsyncer); ok {
		return file.Fsync(ctx, flags)
	}
	return fs.OK
}

// SetDelay has fsyncs of all files take a time that are below a directory of a name,
// wherever that is. 0 is no time.
func SetDelay(delays, name string, takes time.Duration) error {
	file := filepath.Join(delays, name)
	if takes == 0 {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	if err := os.WriteFile(file+".new", []byte(takes.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// delay is how long an fsync of a file takes. A name without a file has no delay.
func delay(delays, path string) time.Duration {
	var longest time.Duration
	for name := range strings.SplitSeq(filepath.Dir(path), "/") {
		text, err := os.ReadFile(filepath.Join(delays, name))
		if err != nil {
			continue
		}
		if d, err := time.ParseDuration(string(text)); err == nil {
			longest = max(longest, d)
		}
	}
	return longest
}
