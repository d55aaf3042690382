// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/etcd-operator/etcd-operator/hack/localkube/archive"
	"github.com/etcd-operator/etcd-operator/hack/localkube/build"
	"github.com/etcd-operator/etcd-operator/hack/localkube/debian"
	"github.com/etcd-operator/etcd-operator/hack/localkube/disk"
	"github.com/etcd-operator/etcd-operator/hack/localkube/environ"
	"github.com/etcd-operator/etcd-operator/hack/localkube/render"
)

// format changes if archives of the same contents change.
const format = "1"

// busyboxProgram is Debian's busybox-static.
const busyboxProgram = "/bin/busybox"

// archive makes an image's archive unless the cache has it under that key.
func (a *App) archive(name, key string, compose func() (archive.Image, error)) (file string, err error) {
	file = filepath.Join(a.Cache, "localkube", "images", name+"-"+key+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	image, err := compose()
	if err != nil {
		return "", fmt.Errorf("make the image %s: %w", name, err)
	}
	return file, archive.Write(file, image)
}

// etcdImage makes the archive of a release of etcd.
func (a *App) etcdImage(b build.Built) (file string, err error) {
	return a.archive("etcd-"+b.Version, b.Key+"-"+format, func() (archive.Image, error) {
		return archive.Etcd(b.Version, runtime.GOARCH, b.Dir, []string{"etcd", "etcdctl", "etcdutl"}, nil), nil
	})
}

// images returns the archives that every node imports: the images of the cluster's own pods,
// and each built version of etcd. Debian's etcd is included if old is set or it is unpacked
// already.
func (a *App) images(ctx context.Context, built map[string]build.Built, old bool) ([]string, error) {
	var files []string
	add := func(name, key string, compose func() (archive.Image, error)) error {
		file, err := a.archive(name, key, compose)
		files = append(files, file)
		return err
	}
	pause, err := a.buildPause(ctx)
	if err != nil {
		return nil, err
	}
	pauseKey, err := fileKey(pause)
	if err != nil {
		return nil, err
	}
	err = add("pause", pauseKey, func() (archive.Image, error) {
		return archive.Pause("docker.io/"+render.PauseImage, runtime.GOARCH, pause), nil
	})
	if err != nil {
		return nil, err
	}
	busyboxKey, err := fileKey(busyboxProgram)
	if err != nil {
		return nil, err
	}
	err = add("busybox", busyboxKey, func() (archive.Image, error) {
		return archive.Busybox(ctx, "docker.io/library/"+render.BusyboxImage, runtime.GOARCH, busyboxProgram)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range build.Etcds() {
		b, there := built[name]
		if !there {
			continue
		}
		file, err := a.etcdImage(b)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if _, err := os.Stat(a.debianEtcdDir()); err != nil && !old {
		return files, nil
	}
	dir, err := a.debianEtcd(ctx)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return files, nil
	}
	version, err := etcdVersion(ctx, dir)
	if err != nil {
		return nil, err
	}
	key, err := fileKey(filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	return files, add("etcd-"+version, key, func() (archive.Image, error) {
		libs, err := archive.Libraries(ctx, filepath.Join(dir, "etcd"))
		if err != nil {
			return archive.Image{}, err
		}
		return archive.Etcd(version, runtime.GOARCH, dir, []string{"etcd", "etcdctl"}, libs), nil
	})
}

// disk returns the containerd directory with these images for new nodes. It removes older
// ones: a node does not need them after its start.
func (a *App) disk(ctx context.Context, archives []string) (string, error) {
	version, err := exec.CommandContext(ctx, "containerd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask containerd for its version: %w", err)
	}
	key := sha256.Sum256([]byte(string(version) + strings.Join(archives, "\n")))
	dir := filepath.Join(a.Cache, "localkube", fmt.Sprintf("disk-%x", key[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	a.say("Importing %d images into a disk that nodes begin with", len(archives))
	old, err := filepath.Glob(filepath.Join(a.Cache, "localkube", "disk-*"))
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if err := os.RemoveAll(o); err != nil {
			return "", err
		}
	}
	return dir, disk.Make(ctx, dir, archives)
}

// debianEtcd unpacks Debian's etcd, which is older than any version that Go modules serve, and
// returns the directory of its programs. A machine without apt-get works without it.
func (a *App) debianEtcd(ctx context.Context) (string, error) {
	bin := filepath.Join(a.debianEtcdDir(), "usr", "bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		a.say("No image of Debian's etcd: there is no apt-get.")
		return "", nil
	}
	return bin, debian.Unpack(ctx, a.debianEtcdDir(), "etcd-server", "etcd-client")
}

func (a *App) debianEtcdDir() string { return filepath.Join(a.Cache, "localkube", "debian-etcd") }

func etcdVersion(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "etcd"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask Debian's etcd for its version: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	version, ok := strings.CutPrefix(line, "etcd Version: ")
	if !ok {
		return "", fmt.Errorf("the etcd of Debian says %q about its version", line)
	}
	return "v" + strings.TrimSpace(version), nil
}

// buildPause builds the pause program; go's own cache makes that quick.
func (a *App) buildPause(ctx context.Context) (string, error) {
	file := filepath.Join(a.Cache, "localkube", "bin", "pause")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "./pause")
	cmd.Dir = filepath.Join(a.Root, "hack", "localkube")
	cmd.Env = environ.Go(os.Environ(), runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the pause program: %w: %s", err, bytes.TrimSpace(out))
	}
	return file, nil
}

// fileKey identifies what a file holds.
func fileKey(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("identify a program that goes into an image: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(append(b, format...)))[:12], nil
}
