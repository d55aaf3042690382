// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestTheImageOfEachDeploymentIsPinned(t *testing.T) {
	i := image{"docker.io/etcd-operator/etcd-operator", "v1.2.3", "sha256:0123"}
	const one = "kind: Deployment\nspec:\n        image: docker.io/etcd-operator/etcd-operator:v1.2.3\n"
	got, err := pin([]byte(one+"---\n"+one), i)
	if want := strings.ReplaceAll(one, "v1.2.3", "v1.2.3@sha256:0123"); err != nil || string(got) != want+"---\n"+want {
		t.Errorf("got %v\n%s", err, got)
	}
	for name, c := range map[string]struct{ text, says string }{
		"no Deployment":    {"kind: Service\n", "0 images in 0 Deployments"},
		"no image":         {one + "---\nkind: Deployment\n", "1 images in 2 Deployments"},
		"another version":  {strings.ReplaceAll(one, "v1.2.3", "v1.2.30"), "it names the image docker.io/etcd-operator/etcd-operator:v1.2.30"},
		"another registry": {strings.ReplaceAll(one, "docker.io/", ""), "it names the image etcd-operator/etcd-operator:v1.2.3"},
	} {
		if _, err := pin([]byte(c.text), i); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.says)
		}
	}
}
