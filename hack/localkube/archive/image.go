// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An Image is the contents of an archive.
type Image struct {
	// Names are full references, such as quay.io/coreos/etcd:v3.6.16.
	Names []string
	Arch  string
	// Layers are packed in this order; what changes most comes last.
	Layers     [][]File
	Compressed bool
	User       string
	Entrypoint []string
	Command    []string
	WorkingDir string
	Env        []string
	Ports      []string
	Labels     map[string]string
	StopSignal string
}

// Path is the PATH of all images.
const Path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (i Image) build() (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, files := range i.Layers {
		l, err := layer(files, i.Compressed)
		if err != nil {
			return nil, fmt.Errorf("image %v: %w", i.Names, err)
		}
		added := mutate.Addendum{Layer: l, History: v1.History{CreatedBy: "etcd-operator hack/image", Created: v1.Time{Time: epoch}}}
		if img, err = mutate.Append(img, added); err != nil {
			return nil, fmt.Errorf("image %v: %w", i.Names, err)
		}
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", i.Arch
	config.Created = v1.Time{Time: epoch}
	config.Config = v1.Config{
		User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Command, WorkingDir: i.WorkingDir,
		Env: append([]string{Path}, i.Env...), Labels: i.Labels, StopSignal: i.StopSignal,
	}
	for _, p := range i.Ports {
		if config.Config.ExposedPorts == nil {
			config.Config.ExposedPorts = map[string]struct{}{}
		}
		config.Config.ExposedPorts[p] = struct{}{}
	}
	return mutate.ConfigFile(img, config)
}

// epoch is the time of all entries, so that equal images are equal bytes.
var epoch = time.Unix(0, 0).UTC()
