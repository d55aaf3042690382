// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The comments on types and fields below are the product's `kubectl explain`:
// write them for the person at that prompt. A field that does not work yet is
// not here: the API server then tells the user, where a silent field would not.
//
// Rules that only a CEL expression can state with a message that a user
// understands are XValidation markers. Each has its twin in validation*.go; the
// cases in ../crd/testdata hold the two together. hack/crdrules adds to the
// generated schema what markers can't say: rules inside of the types of
// Kubernetes, rules about edits, and the settings of etcd that are reserved.

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
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="True while the cluster serves reads and writes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyMembers`,description="Members that serve clients now"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="Members that the cluster should have"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="etcd version that the cluster runs"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`,description="Why the cluster is in its phase"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must be at most 52 characters: pod names append 11 more, and the limit of a host name is 63",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.')",message="metadata.name must not contain a dot: it names Services, which are single DNS labels",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]')",message="metadata.name must start with a lowercase letter: it names Services, which must",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.service) || !has(self.spec.service.name) || self.spec.service.name != self.metadata.name",message="service.name must not be the name of the cluster: the Service of the members' names has it",fieldPath=".spec.service.name"
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
	// upgrade the members in place, one at a time. Unset in a
	// cluster that runs: it stays at its version, whatever the operator's default
	// becomes. Default: 3.6.16.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$')",message="version must be a full semantic version such as 3.6.16 or v3.6.16: a tag like latest or a shortened 3.6 does not say which etcd to run"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?[0-9]+[.]') || self.matches('^v?3[.][1-9]')",message="version must be a 3.x release of etcd, 3.1 or later"
	Version string `json:"version,omitempty"`

	// While true, the operator leaves the cluster alone: it neither changes
	// members nor replaces dead ones, and says so in status.controlPaused. etcd
	// goes on serving. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// How the pods of members are made. An edit that running members must follow
	// is rolled out: one member at a time, with a quorum kept.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// Encryption and authentication by certificates, between members, between
	// clients and members, or both. Default: plain text. Whether it is on can't
	// be changed after creation, since it changes the members' URLs; the names
	// and contents of the Secrets can.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`

	// How the Service for clients is made.
	// +optional
	Service *ServicePolicy `json:"service,omitempty"`

	// Whether a PodDisruptionBudget keeps drains of nodes from taking the quorum.
	// Default: true. A cluster of fewer than 3 members has none: it could never
	// be drained.
	// +optional
	PodDisruptionBudget *bool `json:"podDisruptionBudget,omitempty"`

	// PriorityClass of the members' pods. Default: that of the Kubernetes cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be the name of a PriorityClass: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// PodPolicy says how the pods of members are made.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tmpfs) || !self.tmpfs || !has(self.persistentVolumeClaimSpec)",message="tmpfs and persistentVolumeClaimSpec exclude each other: data is kept either in memory or on volumes",fieldPath=".tmpfs"
// +kubebuilder:validation:XValidation:rule="!has(self.etcdEnv) || !has(self.extraArgs) || self.extraArgs.all(a, !self.etcdEnv.exists(e, e.name == 'ETCD_' + a.split('=')[0].substring(2).upperAscii().replace('-', '_')))",message="extraArgs and etcdEnv must not both make a setting: etcd does not start with a flag and a variable for the same",fieldPath=".extraArgs"
type PodPolicy struct {
	// Labels that are added to the pods, and to volumes when they are made. The key
	// `app` and keys that begin with `etcd_` are reserved for the operator, which
	// finds its pods by them. An edit is made to running pods in place.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('etcd_'))",message="labels must not contain the key app or keys that begin with etcd_: the operator finds its pods by them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="labels must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="labels must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations that are added to the pods. The key `etcd.version` and keys that
	// begin with `etcd.database.coreos.com/` are reserved for the operator. An
	// edit is made to running pods in place.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'etcd.version' && !k.startsWith('etcd.database.coreos.com/'))",message="annotations must not contain the key etcd.version or keys that begin with etcd.database.coreos.com/: the operator keeps its notes there"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^((container[.])?seccomp[.]security[.]alpha[.]kubernetes[.]io|container[.]apparmor[.]security[.]beta[.]kubernetes[.]io)/'))",message="annotations must not contain profiles of seccomp or AppArmor: set pod.securityContext.seccompProfile or appArmorProfile"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.matches('^(kubernetes[.]io/config[.].*|scheduler[.]alpha[.]kubernetes[.]io/tolerations|controller[.]kubernetes[.]io/pod-deletion-cost)$'))",message="annotations must not contain keys by which Kubernetes would take the pods for something else: kubernetes.io/config.*, scheduler.alpha.kubernetes.io/tolerations and controller.kubernetes.io/pod-deletion-cost"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="annotations must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(bytes(self[k]))).sum() <= 200000",message="annotations must hold at most 200000 bytes: Kubernetes keeps no more than 256 KiB, and others add theirs"
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels that a node must have to run a member.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="nodeSelector must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="nodeSelector must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// Scheduling constraints of the pods. Pods of the cluster have the labels
	// `app: etcd` and `etcd_cluster: <name of the cluster>`.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// If true and affinity is unset, no two members may run on the same node. This
	// is the old form: prefer affinity or topologySpreadConstraints. Default:
	// false.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// Taints of nodes that the pods tolerate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// How the members are spread over nodes, zones or other domains. Default: over
	// nodes and zones as evenly as the scheduler can, without insisting. An empty
	// list: not at all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitzero"`

	// CPU and memory of the etcd container; the init container gets the same.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Environment variables of the etcd container, such as
	// ETCD_AUTO_COMPACTION_RETENTION. Variables of settings that the operator
	// makes itself (names, URLs, data directory, how the cluster starts,
	// certificates) are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// Further command line arguments of etcd, each in the form
	// `--flag=value`, such as `--quota-backend-bytes=8589934592`. Flags that the
	// operator sets itself are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^--[a-z][a-z0-9-]*='))",message="extraArgs must have the form --flag=value, such as --quota-backend-bytes=8589934592 or --pre-vote=true"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.split('=')[0] == a.split('=')[0]))",message="extraArgs must not contain a flag twice"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// Volume that each member keeps its data on. A member whose pod is lost comes
	// back on its volume with its data, also when all pods are lost at once.
	// Unset: an emptyDir, which is lost with its pod. A larger
	// `resources.requests.storage` expands the volumes, where their StorageClass
	// allows it; any other edit replaces the members one at a time.
	// +optional
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// If true, members without a persistentVolumeClaimSpec keep their data in
	// memory: fast, counted as memory of the pod, and lost when the node restarts.
	// Default: false.
	// +optional
	Tmpfs bool `json:"tmpfs,omitempty"`

	// Security context of the pods. What is unset in it is set as the restricted
	// Pod Security Standard asks: a user that is not root, the runtime's default
	// seccomp profile.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Secrets with credentials for the registries of the pods' images.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ServiceAccount of the pods. Its token is not mounted: etcd does not call
	// Kubernetes. Default: default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serviceAccountName must be the name of a ServiceAccount: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Image of the init container check-dns, which holds etcd back until the
	// pod's own name resolves. It must hold /bin/sh, nslookup, sed and grep, as
	// busybox does. Default: the operator's own image, which needs no shell and
	// lets the pods of several members start at the same time. An edit applies to
	// pods that are made after it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*$')",message="busyboxImage must be an image reference such as busybox:1.28, without spaces or letters of other scripts"
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// Seconds that the init container check-dns waits for the pod's name to
	// resolve before it fails, says so, and is started again. 0: no bound.
	// Default: 120. An edit applies to pods that are made after it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DNSTimeoutInSecond *int64 `json:"DNSTimeoutInSecond,omitempty"`

	// Suffix of the members' names in their URLs, such as `.cluster.local`, for
	// clients that resolve names without a search list. Can't be changed after
	// creation. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[.]?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[.]?$')",message="ClusterDomain must be a DNS domain such as .cluster.local, in lowercase letters, digits, dashes and dots"
	ClusterDomain string `json:"ClusterDomain,omitempty"`
}

// TLSPolicy says by which certificates members and clients know each other.
type TLSPolicy struct {
	// Certificates that somebody else makes and keeps in Secrets.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS names the Secrets that hold certificates. Each Secret may have the
// keys named with its field, or `tls.crt`, `tls.key` and `ca.crt`, as cert-manager
// makes them.
//
// +kubebuilder:validation:XValidation:rule="(has(self.operatorSecret) && size(self.operatorSecret) > 0) == (has(self.member) && has(self.member.serverSecret) && size(self.member.serverSecret) > 0)",message="operatorSecret and member.serverSecret belong together: without the one the operator could not talk to the members, without the other they would not ask it for a certificate"
type StaticTLS struct {
	// Certificates of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// Secret with the certificate by which the operator is a client of the
	// members: `etcd-client.crt`, `etcd-client.key` and `etcd-client-ca.crt`.
	// Needed where member.serverSecret is set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="operatorSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	OperatorSecret string `json:"operatorSecret,omitempty"`

	// If true, the operator does not verify the members' server certificates. The
	// members verify clients and each other all the same. Default: false.
	// +optional
	AllowSelfSignedCertificates bool `json:"allowSelfSignedCertificates,omitempty"`
}

// MemberSecret names the Secrets with the members' certificates.
type MemberSecret struct {
	// Secret with the certificate by which members know each other: `peer.crt`,
	// `peer.key` and `peer-ca.crt`. It must be valid for
	// `*.<name>.<namespace>.svc` and for `*.<name>.<namespace>.svc.cluster.local`
	// (with the domain of your Kubernetes), since members look up the name of whoever
	// calls, and be usable by servers and clients. Unset: members talk in plain text.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="peerSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	PeerSecret string `json:"peerSecret,omitempty"`

	// Secret with the certificate that members show to clients, and the CA by
	// which they know clients: `server.crt`, `server.key` and `server-ca.crt`. It
	// must be valid for `*.<name>.<namespace>.svc`, and for the names by which
	// clients connect, such as `<name>-client.<namespace>.svc`. Unset: clients
	// talk in plain text.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serverSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ServicePolicy says how the Service for clients is made.
type ServicePolicy struct {
	// Name of the Service. Default: `<name of the cluster>-client`. After an edit
	// the Service of the old name is deleted.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"
	Name string `json:"name,omitempty"`

	// Annotations that are added to the Service.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.database.coreos.com/'))",message="annotations must not contain keys that begin with etcd.database.coreos.com/: the operator keeps its notes there"
	// +kubebuilder:validation:XValidation:rule="!('service.beta.kubernetes.io/load-balancer-source-ranges' in self)",message="annotations must not contain service.beta.kubernetes.io/load-balancer-source-ranges: Kubernetes takes it for Services of type LoadBalancer alone"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="annotations must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(bytes(self[k]))).sum() <= 200000",message="annotations must hold at most 200000 bytes: Kubernetes keeps no more than 256 KiB, and others add theirs"
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels that pods must have to be reached through the Service, besides those
	// by which it finds the members: for members of a kind, such as those with
	// a label of your own.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="selector must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="selector must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	Selector map[string]LabelValue `json:"selector,omitempty"`
}

// LabelValue is at most 63 letters, digits, dashes, dots and underscores, with a
// letter or digit first and last.
// ---
// It is an alias so that maps of labels stay maps of strings; the schema needs
// a name to hang the limit on.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue = string
