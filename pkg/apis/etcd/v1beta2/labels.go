// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// All objects of a cluster have the labels AppLabel=AppEtcd and ClusterLabel. The operator
// finds them by these labels.
const (
	// AppLabel is the label that objects of all clusters share.
	AppLabel = "app"
	// AppEtcd is the value of AppLabel.
	AppEtcd = "etcd"
	// ClusterLabel holds the name of the EtcdCluster.
	ClusterLabel = "etcd_cluster"
	// NodeLabel holds the name of the member.
	NodeLabel = "etcd_node"
)

// OperatorAnnotations begins the keys of the annotations in which the operator keeps its
// notes. Specs must not contain them.
const OperatorAnnotations = GroupName + "/"

const (
	// VersionAnnotation on a pod holds the version of etcd. Specs must not contain it.
	VersionAnnotation = "etcd.version"
	// OperatorVersionAnnotation on a CRD is the version of the operator that wrote it.
	OperatorVersionAnnotation = OperatorAnnotations + "operator-version"
	// LiteralTagsAnnotation on an EtcdCluster has the value "true" if tags of images have no
	// leading v unless the spec's version has one. A restore or a test of a backup keeps
	// status.literalTags of the original cluster in it.
	LiteralTagsAnnotation = OperatorAnnotations + "literal-tags"
	// ScopeAnnotation on an object selects the operators that manage it.
	ScopeAnnotation = OperatorAnnotations + "scope"
	// ScopeClusterWide is the value of ScopeAnnotation for operators with -cluster-wide. It
	// excludes all others.
	ScopeClusterWide = "clusterwide"
)
