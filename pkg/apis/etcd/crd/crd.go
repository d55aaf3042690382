// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of the API group
// etcd.database.coreos.com, as hack/update-codegen.sh generates them from the
// types, and nothing else.
package crd

import (
	_ "embed" // for the CRDs' YAML

	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed etcd.database.coreos.com_etcdclusters.yaml
var etcdClusters []byte

//go:embed etcd.database.coreos.com_etcdbackups.yaml
var etcdBackups []byte

//go:embed etcd.database.coreos.com_etcdrestores.yaml
var etcdRestores []byte

// EtcdCluster returns the CustomResourceDefinition of EtcdClusters. Each call
// returns a new object, which the caller may change.
func EtcdCluster() (*apiextensionsv1.CustomResourceDefinition, error) {
	return copied(clusterDefinition())
}

// EtcdBackup returns the CustomResourceDefinition of EtcdBackups. Each call
// returns a new object, which the caller may change.
func EtcdBackup() (*apiextensionsv1.CustomResourceDefinition, error) {
	return copied(backupDefinition())
}

// EtcdRestore returns the CustomResourceDefinition of EtcdRestores. Each call
// returns a new object, which the caller may change.
func EtcdRestore() (*apiextensionsv1.CustomResourceDefinition, error) {
	return copied(restoreDefinition())
}

// The definitions. The first use decodes each.
var (
	clusterDefinition = decoded("EtcdCluster", etcdClusters)
	backupDefinition  = decoded("EtcdBackup", etcdBackups)
	restoreDefinition = decoded("EtcdRestore", etcdRestores)
)

func decoded(kind string, text []byte) func() (*apiextensionsv1.CustomResourceDefinition, error) {
	return sync.OnceValues(func() (*apiextensionsv1.CustomResourceDefinition, error) { return decode(kind, text) })
}

func copied(crd *apiextensionsv1.CustomResourceDefinition, err error) (*apiextensionsv1.CustomResourceDefinition, error) {
	return crd.DeepCopy(), err
}

func decode(kind string, text []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return nil, fmt.Errorf("decode the embedded CRD of %s: %w", kind, err)
	}
	return crd, nil
}
