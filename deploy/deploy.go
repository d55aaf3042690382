// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the manifests of the operators for programs that install them.
package deploy

import _ "embed"

var (
	// Namespaced is install.yaml: the CRDs, and the operators of one namespace.
	//
	//go:embed install.yaml
	Namespaced []byte
	// ClusterWide is install-cluster-wide.yaml: the CRDs, and the operators of all namespaces.
	//
	//go:embed install-cluster-wide.yaml
	ClusterWide []byte
)
