// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of every kind in this package.
	GroupName = "etcd.database.coreos.com"

	// EtcdClusterResourceKind is the kind of an EtcdCluster.
	EtcdClusterResourceKind = "EtcdCluster"
	// EtcdClusterResourcePlural is the name of EtcdClusters in URLs and RBAC rules.
	EtcdClusterResourcePlural = "etcdclusters"
	// EtcdClusterCRDName is the name of the CustomResourceDefinition of EtcdClusters.
	EtcdClusterCRDName = EtcdClusterResourcePlural + "." + GroupName

	// EtcdBackupResourceKind is the kind of an EtcdBackup.
	EtcdBackupResourceKind = "EtcdBackup"
	// EtcdBackupResourcePlural is the name of EtcdBackups in URLs and RBAC rules.
	EtcdBackupResourcePlural = "etcdbackups"
	// EtcdBackupCRDName is the name of the CustomResourceDefinition of EtcdBackups.
	EtcdBackupCRDName = EtcdBackupResourcePlural + "." + GroupName

	// EtcdRestoreResourceKind is the kind of an EtcdRestore.
	EtcdRestoreResourceKind = "EtcdRestore"
	// EtcdRestoreResourcePlural is the name of EtcdRestores in URLs and RBAC rules.
	EtcdRestoreResourcePlural = "etcdrestores"
	// EtcdRestoreCRDName is the name of the CustomResourceDefinition of EtcdRestores.
	EtcdRestoreCRDName = EtcdRestoreResourcePlural + "." + GroupName
)

var (
	// SchemeGroupVersion is the group and version of every kind in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta2"}

	// SchemeBuilder collects the functions that add this package's kinds to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds this package's kinds to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource's name with the group; the generated listers use it.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &EtcdCluster{}, &EtcdClusterList{}, &EtcdBackup{}, &EtcdBackupList{}, &EtcdRestore{}, &EtcdRestoreList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
