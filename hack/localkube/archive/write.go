// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"encoding/json"
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
func Write(file string, image Image) (err error) {
	img, err := image.build()
	if err != nil {
		return err
	}
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
	if err := errors.Join(writeArchive(f, img, image.Names), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func writeArchive(w io.Writer, img v1.Image, names []string) error {
	t := tar.NewWriter(w)
	put := func(name string, content []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
			return err
		}
		_, err := t.Write(content)
		return err
	}
	putJSON := func(name string, v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return put(name, b)
	}
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

	manifest, err := img.RawManifest()
	if err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return err
	}
	configName, err := img.ConfigName()
	if err != nil {
		return err
	}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	if err := errors.Join(
		putJSON("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}),
		put(blob(digest), manifest),
		put(blob(configName), config),
	); err != nil {
		return err
	}
	var layerFiles []string
	written := map[v1.Hash]bool{}
	for _, l := range layers {
		h, err := l.Digest()
		if err != nil {
			return err
		}
		layerFiles = append(layerFiles, blob(h))
		if written[h] {
			continue
		}
		written[h] = true
		content, err := readLayer(l)
		if err != nil {
			return err
		}
		if err := put(blob(h), content); err != nil {
			return err
		}
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, name := range names {
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)),
			Annotations: map[string]string{
				"io.containerd.image.name":          name,
				"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
			},
		})
	}
	var tags []string
	for _, name := range names {
		tags = append(tags, strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/library/"), "docker.io/"))
	}
	docker := []map[string]any{{"Config": blob(configName), "RepoTags": tags, "Layers": layerFiles}}
	return errors.Join(putJSON("index.json", index), putJSON("manifest.json", docker), t.Close())
}

func readLayer(l v1.Layer) ([]byte, error) {
	r, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
