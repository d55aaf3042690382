// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// layoutWriter writes an OCI layout into a tar archive, each blob once.
type layoutWriter struct {
	tar     *tar.Writer
	written map[v1.Hash]bool
}

func newLayout(w io.Writer) *layoutWriter {
	return &layoutWriter{tar: tar.NewWriter(w), written: map[v1.Hash]bool{}}
}

// writtenImage is where a layout has the parts of an image.
type writtenImage struct {
	digest v1.Hash // of the manifest
	size   int64
	config string
	layers []string
}

// image writes the blobs of an image.
func (l *layoutWriter) image(img v1.Image) (writtenImage, error) {
	manifest, err := img.RawManifest()
	if err != nil {
		return writtenImage{}, err
	}
	digest, err := img.Digest()
	if err != nil {
		return writtenImage{}, err
	}
	config, err := img.RawConfigFile()
	if err != nil {
		return writtenImage{}, err
	}
	configName, err := img.ConfigName()
	if err != nil {
		return writtenImage{}, err
	}
	layers, err := img.Layers()
	if err != nil {
		return writtenImage{}, err
	}
	if err := errors.Join(
		l.begin(),
		l.blob(digest, func() ([]byte, error) { return manifest, nil }),
		l.blob(configName, func() ([]byte, error) { return config, nil }),
	); err != nil {
		return writtenImage{}, err
	}
	written := writtenImage{digest: digest, size: int64(len(manifest)), config: blobPath(configName)}
	for _, layer := range layers {
		h, err := layer.Digest()
		if err != nil {
			return writtenImage{}, err
		}
		written.layers = append(written.layers, blobPath(h))
		if err := l.blob(h, func() ([]byte, error) { return readLayer(layer) }); err != nil {
			return writtenImage{}, err
		}
	}
	return written, nil
}

// begin writes the file that makes an archive an OCI layout, before the first blob.
func (l *layoutWriter) begin() error {
	if len(l.written) > 0 {
		return nil
	}
	return l.putJSON("oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"})
}

// index writes index.json, which gives names to what the layout holds.
func (l *layoutWriter) index(root v1.Descriptor, names []string) error {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, name := range names {
		named := root
		named.Annotations = map[string]string{
			"io.containerd.image.name":          name,
			"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
		}
		index.Manifests = append(index.Manifests, named)
	}
	return l.putJSON("index.json", index)
}

func (l *layoutWriter) close() error { return l.tar.Close() }

func blobPath(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// blob writes a blob that the layout does not have yet.
func (l *layoutWriter) blob(h v1.Hash, read func() ([]byte, error)) error {
	if l.written[h] {
		return nil
	}
	l.written[h] = true
	content, err := read()
	if err != nil {
		return err
	}
	return l.put(blobPath(h), content)
}

func (l *layoutWriter) put(name string, content []byte) error {
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := l.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err := l.tar.Write(content)
	return err
}

func (l *layoutWriter) putJSON(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.put(name, b)
}

func readLayer(l v1.Layer) ([]byte, error) {
	r, err := l.Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
