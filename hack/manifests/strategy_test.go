// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// Who adds the volume to installed operators, or removes it, applies one manifest over another.
// The API server has set rollingUpdate in the Deployments that do not name a strategy, and no
// server-side apply, which is Helm's default too, removes what it does not own: beside the type
// Recreate, the API server would refuse it.
func TestAnApplyCanAddTheVolume(t *testing.T) {
	for name, text := range map[string]string{
		"kustomize": overlay(t, "namespace: databases\nresources: [DEPLOY/namespaced-with-volume]"),
		"the chart": renderIn(t, release, "backupVolume: {claimName: etcd-backups}"),
		"example/etcd-backup-operator/volume.yaml":  read(t, "example/etcd-backup-operator/volume.yaml"),
		"example/etcd-restore-operator/volume.yaml": read(t, "example/etcd-restore-operator/volume.yaml"),
	} {
		found := 0
		for key, object := range parse(t, text, release) {
			deployment := toText(t, object)
			if !strings.HasPrefix(key, "Deployment ") || !strings.Contains(deployment, "claimName: etcd-backups\n") {
				continue
			}
			found++
			const want = "  strategy:\n    rollingUpdate:\n      maxSurge: 0\n      maxUnavailable: 1\n    type: RollingUpdate\n"
			if !strings.Contains(deployment, want) {
				t.Errorf("%s: %s lacks\n%s\nit is\n%s", name, key, want, deployment)
			}
		}
		if found == 0 {
			t.Errorf("%s: no Deployment has the volume", name)
		}
	}
}
