// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/etcd-operator/etcd-operator/hack/localkube/instance"
)

// BusyboxImage is the image of the provisioner's helper pods, and of tests.
const BusyboxImage = "busybox:1.35"

// Addons are the objects that make the cluster an ordinary one.
func Addons() string {
	return `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local-path
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: rancher.io/local-path
volumeBindingMode: WaitForFirstConsumer
reclaimPolicy: Delete
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: local-path-config
  namespace: kube-system
data:
  setup: |
    #!/bin/sh
    set -eu
    mkdir -m 0777 -p "$VOL_DIR"
  teardown: |
    #!/bin/sh
    set -eu
    rm -rf "$VOL_DIR"
`
}

// LocalPathConfig is the configuration of the local-path provisioner.
func LocalPathConfig(c instance.Config) string {
	return fmt.Sprintf(`{"nodePathMap": [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [%q]}]}
`, VolumeRoot(c))
}

// HelperPod is the pod that makes or removes a volume's directory.
func HelperPod() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: helper-pod
spec:
  priorityClassName: system-node-critical
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  enableServiceLinks: false
  containers:
  - name: helper-pod
    image: %s
    imagePullPolicy: IfNotPresent
`, BusyboxImage)
}

// LocalPathProvisioner returns the arguments of the provisioner.
func LocalPathProvisioner(c instance.Config) []string {
	return []string{
		"start",
		"--config=" + c.Path("local-path.json"),
		"--kubeconfig=" + c.Path("kubeconfigs/admin"),
		"--namespace=kube-system",
		"--configmap-name=local-path-config",
		"--service-account-name=default",
		"--helper-image=" + BusyboxImage,
		"--helper-pod-file=" + c.Path("helper-pod.yaml"),
	}
}
