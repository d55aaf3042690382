// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// BusyboxImage is an image with a shell, for tests.
const BusyboxImage = "busybox:1.35"

// provisioner is the name of the maintained local-path provisioner.
const provisioner = "rancher.io/local-path"

// Addons are the initial objects of an ordinary cluster.
func Addons() string {
	return `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local-path
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: ` + provisioner + `
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
`
}

// LocalPathProvisioner returns the arguments of the provisioner of volumes
// (pins/kubernetes/kube).
func LocalPathProvisioner(c instance.Config) []string {
	return []string{
		"--name=" + provisioner,
		"--kubeconfig=" + c.Path("kubeconfigs/admin"),
		"--disk=" + c.NodeDir("%s", Volumes),
		"--root=" + VolumeRoot(c),
	}
}
