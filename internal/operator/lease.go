// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/pod"
)

// Leases are named after the program. Operators of one namespace compete for a Lease in it.
// All operators with -cluster-wide share one Lease, wherever they run, because they manage the
// same objects. So an operator of each kind can run side by side, in one namespace or in two.
const (
	clusterWideSuffix    = "-cluster-wide"
	clusterWideNamespace = metav1.NamespaceDefault
)

// leaseOf returns the Lease of a program in a namespace.
func leaseOf(program, namespace string, clusterWide bool) (inNamespace, name string) {
	if clusterWide {
		return clusterWideNamespace, program + clusterWideSuffix
	}
	return namespace, program
}

// identity returns a name that is unique among instances, also across namespaces.
func identity(self pod.Pod, clusterWide bool) string {
	if clusterWide {
		return self.Namespace + "/" + self.Name
	}
	return self.Name
}
