//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// ownedBy reports whether the EtcdCluster is the only controller of an object.
func ownedBy(owners []metav1.OwnerReference, object *v1beta2.EtcdCluster) bool {
	if len(owners) != 1 {
		return false
	}
	owner := owners[0]
	return owner.APIVersion == "etcd.database.coreos.com/v1beta2" && owner.Kind == "EtcdCluster" &&
		owner.Name == object.Name && owner.UID == object.UID && owner.Controller != nil && *owner.Controller
}
