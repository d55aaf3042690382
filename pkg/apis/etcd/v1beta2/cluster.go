// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The comments on types and fields below are the product's `kubectl explain`:
// write them for the person at that prompt. A field that does not work yet is
// not here: the API server then tells the user, where a silent field would not.
//
// Rules that only a CEL expression can state with a message that a user
// understands are XValidation markers. Each has its twin in validation.go; the
// cases in ../crd/testdata hold the two together.

// EtcdCluster is an etcd cluster that the etcd operator runs: it makes one pod
// for each member, joins the members one at a time, replaces dead ones, and
// changes size and version when the spec says so. Clients reach the cluster
// through the Service `<name>-client` on port 2379.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdclusters,shortName=etcd,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the cluster is in its life: Creating, Running or Failed"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyMembers`,description="Members that serve clients now"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="Members that the cluster should have"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="etcd version that the cluster runs"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`,description="Why the cluster is in its phase"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must be at most 52 characters: pod names append 11 more, and the limit of a host name is 63",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.')",message="metadata.name must not contain a dot: it names Services, which are single DNS labels",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]')",message="metadata.name must start with a lowercase letter: it names Services, which must",fieldPath=".metadata"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The name also names the cluster's Services and
	// begins the names of its pods: at most 52 characters, lowercase letters,
	// digits and dashes, starting with a letter.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the cluster should be. Edit it at any time; the operator follows.
	Spec ClusterSpec `json:"spec"`

	// What the operator last saw of the cluster. Written by the operator alone.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// EtcdClusterList is a list of EtcdClusters.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type EtcdClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []EtcdCluster `json:"items"`
}

// ClusterSpec is what a user asks of a cluster.
type ClusterSpec struct {
	// Number of members, from 1 to 7. Prefer an odd number: a cluster of 4
	// tolerates the loss of one member, as a cluster of 3 does, and has one more
	// that can fail. An even size is allowed and answered with a warning event.
	// Change it to grow or shrink the cluster; members join and leave one at a
	// time.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	Size int `json:"size"`

	// Image repository of etcd, without a tag. The image of a member is
	// `<repository>:v<version>`. Default: quay.io/coreos/etcd.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^(([A-Za-z0-9][A-Za-z0-9.-]*|\\\\[[0-9A-Fa-f:]+\\\\])(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",message="repository must be an image repository without tag or digest, such as quay.io/coreos/etcd: the operator appends :v<version>"
	Repository string `json:"repository,omitempty"`

	// etcd version of the members: a full semantic version, with or without a
	// leading v, such as 3.6.16 or v3.6.16 (they mean the same). Change it to
	// upgrade the members in place, one at a time. Default: 3.6.16.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$')",message="version must be a full semantic version such as 3.6.16 or v3.6.16: a tag like latest or a shortened 3.6 does not say which etcd to run"
	Version string `json:"version,omitempty"`

	// While true, the operator leaves the cluster alone: it neither changes
	// members nor replaces dead ones, and says so in status.controlPaused. etcd
	// goes on serving. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// How the pods of members are made. Applies to pods that are made after the
	// edit.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`
}

// PodPolicy says how the pods of members are made.
type PodPolicy struct {
	// Labels that are added to the pods. The key `app` and keys that begin with
	// `etcd_` are reserved for the operator, which finds its pods by them.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('etcd_'))",message="labels must not contain the key app or keys that begin with etcd_: the operator finds its pods by them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="labels must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="labels must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Image of the init container check-dns, which holds etcd back until the
	// pod's own name resolves. It must hold /bin/sh, nslookup, sed and grep, as
	// busybox does. Default: the operator's own image, which needs no shell and
	// lets the pods of several members start at the same time.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.matches('[ \\\\t\\\\n\\\\r]')",message="busyboxImage must be an image reference such as busybox:1.28, without spaces"
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// Seconds that the init container check-dns waits for the pod's name to
	// resolve before it fails, says so, and is started again. 0: no bound.
	// Default: 120.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DNSTimeoutInSecond *int64 `json:"DNSTimeoutInSecond,omitempty"`
}

// LabelValue is at most 63 letters, digits, dashes, dots and underscores, with a
// letter or digit first and last.
// ---
// It is an alias so that maps of labels stay maps of strings; the schema needs
// a name to hang the limit on.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue = string
