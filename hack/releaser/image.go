// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/etcd-operator/etcd-operator/hack/localkube/archive"
	"github.com/etcd-operator/etcd-operator/hack/localkube/operatorimage"
)

// An image is the image of the operators, for all architectures.
type image struct{ repository, tag, digest string }

// name is the name without the digest.
func (i image) name() string { return i.repository + ":" + i.tag }

// String is the name that always means the same image.
func (i image) String() string { return i.name() + "@" + i.digest }

// writeImage writes the image, an OCI layout.
func (r *release) writeImage(programs []program, directory string) (image, error) {
	i := image{repository: operatorimage.Repository, tag: r.source.Version}
	var images []archive.Image
	for _, arch := range r.archs {
		built := slices.IndexFunc(programs, func(p program) bool { return p.platform == platform{"linux", arch} })
		if built < 0 {
			return image{}, fmt.Errorf("no program was built for linux/%s", arch)
		}
		images = append(images, r.source.Image(arch, filepath.Dir(programs[built].file), r.operators...))
	}
	var err error
	i.digest, err = archive.WriteIndex(filepath.Join(directory, "etcd-operator-"+r.source.Version+"-image.tar"), i.name(), images)
	return i, err
}
