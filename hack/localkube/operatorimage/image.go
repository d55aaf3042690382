// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorimage

import (
	"os"
	"path/filepath"

	"github.com/etcd-operator/etcd-operator/hack/localkube/archive"
)

// Image composes the image of programs that Build has compiled for Linux into a directory. It
// names them by their directories below cmd.
func (s Source) Image(arch, directory string, programs ...string) archive.Image {
	built := map[string]string{}
	for _, program := range programs {
		built[Programs[program]] = filepath.Join(directory, program)
	}
	license := filepath.Join(s.Root, "LICENSE")
	if _, err := os.Stat(license); err != nil {
		license = ""
	}
	return archive.Operator([]string{Repository + ":" + s.Version}, arch, built, license, map[string]string{
		"org.opencontainers.image.title":       "etcd-operator",
		"org.opencontainers.image.description": "Operates etcd clusters on Kubernetes",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     s.Version,
		"org.opencontainers.image.revision":    s.Commit,
	})
}
