// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive writes container images as archives, without a container
// engine. The same input gives the same bytes.
package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A File is an entry of a layer: a regular file, unless Dir or Link is set.
// Directories above it are made as needed.
type File struct {
	Path    string // absolute
	Mode    int64
	Owner   int    // user and group
	Content []byte // or
	Source  string // a file of the host to copy
	Link    string // target of a symbolic link
	Dir     bool
}

// layer packs files into a layer. Compressed layers suit a release; the local
// Kubernetes imports uncompressed ones faster.
func layer(files []File, compressed bool) (v1.Layer, error) {
	content, err := pack(files)
	if err != nil {
		return nil, err
	}
	if !compressed {
		return static.NewLayer(content, types.OCIUncompressedLayer), nil
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompression(compression.GZip),
		tarball.WithCompressedCaching) // the digest and the archive need it
}

func pack(files []File) ([]byte, error) {
	files, err := withParents(files)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		h := &tar.Header{
			Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, Uid: f.Owner, Gid: f.Owner, Format: tar.FormatPAX,
		}
		content := f.Content
		switch {
		case f.Dir:
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		case f.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		case f.Source != "":
			if content, err = os.ReadFile(f.Source); err != nil {
				return nil, fmt.Errorf("put %s into an image: %w", f.Path, err)
			}
			fallthrough
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	return buf.Bytes(), w.Close()
}

// withParents adds the directories that are only implied, and sorts.
func withParents(files []File) ([]File, error) {
	seen := map[string]bool{"/": true}
	var all []File
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path {
			return nil, fmt.Errorf("%q is not a clean absolute path", f.Path)
		}
		if seen[f.Path] {
			return nil, fmt.Errorf("%s is in the image twice", f.Path)
		}
		seen[f.Path] = true
		all = append(all, f)
	}
	for _, f := range files {
		for dir := path.Dir(f.Path); !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			all = append(all, File{Path: dir, Mode: 0o755, Dir: true})
		}
	}
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}
