// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Write writes the image to a file, which appears when it is complete. The archive is an OCI
// layout that also has the manifest.json of `docker save`: containerd, docker, podman, kind
// and skopeo all read it.
func Write(file string, image Image) error {
	img, err := image.build()
	if err != nil {
		return err
	}
	return whole(file, func(w io.Writer) error { return writeArchive(w, img, image.Names) })
}

// whole writes a file that appears when it is complete.
func whole(file string, write func(io.Writer) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.partial")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", file, err), os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func writeArchive(w io.Writer, img v1.Image, names []string) error {
	l := newLayout(w)
	written, err := l.image(img)
	if err != nil {
		return err
	}
	var tags []string
	for _, name := range names {
		tags = append(tags, strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/library/"), "docker.io/"))
	}
	docker := []map[string]any{{"Config": written.config, "RepoTags": tags, "Layers": written.layers}}
	root := v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: written.digest, Size: written.size}
	return errors.Join(l.index(root, names), l.putJSON("manifest.json", docker), l.close())
}
