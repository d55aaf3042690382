// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

const allOperators = `
- DEPLOY/etcd-operator
- DEPLOY/etcd-backup-operator
- DEPLOY/etcd-restore-operator
`

// The ways to install give the same objects for the same choices.
func TestTheSameChoicesGiveTheSameObjects(t *testing.T) {
	for _, c := range []struct {
		name      string
		namespace string // default: release
		values    string // of the chart
		kustomize string
		file      string // for one kubectl apply
		besides   []string
	}{
		{
			name:      "one namespace",
			values:    "crds: install",
			kustomize: "namespace: databases\nresources: [DEPLOY/namespaced]",
			file:      "deploy/install.yaml",
		},
		{
			name:      "all namespaces",
			namespace: "etcd-operator",
			values:    "{crds: install, scope: clusterWide}",
			kustomize: "resources: [DEPLOY/cluster-wide]",
			file:      "deploy/install-cluster-wide.yaml",
			besides:   []string{"Namespace etcd-operator"},
		},
		{
			name: "operators that register the CRDs",
			kustomize: "namespace: databases\nresources:" + allOperators + `
components: [DEPLOY/components/register-crds]
patches:
- target: {kind: ClusterRole, name: etcd-operator-register-crds}
  patch: |-
    - {op: replace, path: /metadata/name, value: etcd-operator-register-crds-databases}
- target: {kind: ClusterRoleBinding, name: etcd-operator-register-crds}
  patch: |-
    - {op: replace, path: /metadata/name, value: etcd-operator-register-crds-databases}
    - {op: replace, path: /roleRef/name, value: etcd-operator-register-crds-databases}
`,
		},
		{
			name:      "the etcd operator alone",
			values:    "{crds: install, backupOperator: {enabled: false}, restoreOperator: {enabled: false}}",
			kustomize: "namespace: databases\nresources: [DEPLOY/crds, DEPLOY/etcd-operator]",
		},
		{
			name:      "monitoring",
			values:    "{crds: none, monitoring: {enabled: true}}",
			kustomize: "namespace: databases\nresources:" + allOperators + "components: [DEPLOY/components/monitoring]",
		},
		{
			name:      "backups on a volume",
			values:    "{crds: none, backupVolume: {claimName: etcd-backups}}",
			kustomize: "namespace: databases\nresources:" + allOperators + "components: [DEPLOY/components/backup-volume]",
		},
		{
			name: "an image by its digest, from a private registry, on two nodes",
			values: `
crds: none
image:
  repository: registry.example.com:5000/mirror/etcd-operator
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
imagePullSecrets: [{name: mirror}]
etcdOperator:
  replicas: 2
  resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 1Gi}}
backupOperator: {enabled: false}
restoreOperator: {enabled: false}
`,
			kustomize: `
namespace: databases
resources: [DEPLOY/etcd-operator]
images:
- name: docker.io/etcd-operator/etcd-operator
  newName: registry.example.com:5000/mirror/etcd-operator
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
replicas:
- {name: etcd-operator, count: 2}
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: mirror}]}
    - op: replace
      path: /spec/template/spec/containers/0/resources
      value: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 1Gi}}
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			namespace := c.namespace
			if namespace == "" {
				namespace = release
			}
			want := parse(t, overlay(t, c.kustomize), namespace)
			for _, key := range c.besides {
				if want[key] == nil {
					t.Errorf("kustomize gives no %s", key)
				}
			}
			if c.file != "" {
				same(t, c.file, parse(t, read(t, c.file), namespace), "kustomize", want)
			}
			for _, key := range c.besides {
				delete(want, key) // helm install --create-namespace
			}
			same(t, "the chart", parse(t, renderIn(t, namespace, c.values), namespace), "kustomize", want)
		})
	}
}

func TestTheGeneratedFilesAreUpToDate(t *testing.T) {
	if err := run(root, true, ""); err != nil {
		t.Error(err)
	}
}
