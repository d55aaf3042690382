// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"maps"
	"testing"
)

func TestDigestsOfImagesWithATag(t *testing.T) {
	const list = `REF                                TYPE                                                 DIGEST      SIZE    PLATFORMS   LABELS
quay.io/coreos/etcd:v3.6.16        application/vnd.docker.distribution.manifest.v2+json sha256:aaaa 9.1 MiB linux/amd64 io.cri-containerd.image=managed
quay.io/coreos/etcd@sha256:aaaa    application/vnd.docker.distribution.manifest.v2+json sha256:aaaa 9.1 MiB linux/amd64 io.cri-containerd.image=managed
registry:5000/etcd:v1              application/vnd.docker.distribution.manifest.v2+json sha256:bbbb 9.1 MiB linux/amd64 -
sha256:cccc                        application/vnd.docker.distribution.manifest.v2+json sha256:aaaa 9.1 MiB linux/amd64 io.cri-containerd.image=managed
`
	want := map[string]string{"quay.io/coreos/etcd:v3.6.16": "sha256:aaaa", "registry:5000/etcd:v1": "sha256:bbbb"}
	if got := tagged(list); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
