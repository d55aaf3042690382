// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteIndex writes one image for several architectures to a file, an OCI layout. It returns
// the digest by which a registry knows the image. The names of the images do not matter.
func WriteIndex(file, name string, images []Image) (digest string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var built []v1.Image
	for _, image := range images {
		img, err := image.build()
		if err != nil {
			return "", err
		}
		built = append(built, img)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: image.Arch}},
		})
	}
	manifest, err := index.RawManifest()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	h, err := index.Digest()
	if err != nil {
		return "", fmt.Errorf("image %s: %w", name, err)
	}
	root := v1.Descriptor{MediaType: types.OCIImageIndex, Digest: h, Size: int64(len(manifest))}
	err = whole(file, func(w io.Writer) error {
		l := newLayout(w)
		for _, img := range built {
			if _, err := l.image(img); err != nil {
				return err
			}
		}
		return errors.Join(
			l.blob(h, func() ([]byte, error) { return manifest, nil }),
			l.index(root, []string{name}),
			l.close())
	})
	return h.String(), err
}
