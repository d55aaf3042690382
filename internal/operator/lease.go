// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/pod"
)

// The Leases that instances of a program compete for, by the program's name. Those
// of one namespace have theirs in it. Those that run with -cluster-wide share one, wherever they are: each of
// them would take care of the same objects. So one of each kind can work side by
// side, in one namespace or in two.
const (
	clusterWideSuffix    = "-cluster-wide"
	clusterWideNamespace = metav1.NamespaceDefault
)

// leaseOf is the Lease for a program in a namespace.
func leaseOf(program, namespace string, clusterWide bool) (inNamespace, name string) {
	if clusterWide {
		return clusterWideNamespace, program + clusterWideSuffix
	}
	return namespace, program
}

// identity tells instances apart, also those of several namespaces.
func identity(self pod.Pod, clusterWide bool) string {
	if clusterWide {
		return self.Namespace + "/" + self.Name
	}
	return self.Name
}
