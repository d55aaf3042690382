// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// BelongsToOthers reports whether an object is neither this cluster's nor left over from an
// earlier EtcdCluster of its name.
func BelongsToOthers(obj metav1.Object, owner *api.EtcdCluster) bool {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return obj.GetLabels()[api.ClusterLabel] != owner.Name
	}
	// Other operators have a kind of this name too, in groups of their own.
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	return err != nil || group.Group != api.GroupName || ref.Kind != api.EtcdClusterResourceKind || ref.Name != owner.Name
}

// differences are the fields of an object that differ from the operator's.
type differences []string

func (d *differences) note(what string, same bool) {
	if !same {
		*d = append(*d, what)
	}
}
