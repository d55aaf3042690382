// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// build returns what `kubectl kustomize` prints for a directory.
func build(directory string) ([]byte, error) {
	// The default options are those of kubectl: no file outside of a kustomization's directory.
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), directory)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", directory, err)
	}
	return resources.AsYaml()
}
