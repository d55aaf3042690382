// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The comments on types and fields below are the product's `kubectl explain`:
// write them for the person at that prompt. Do not add a field before it works: the
// API server refuses an unknown field, and a field without effect misleads users.
//
// XValidation markers are rules that need a CEL expression or a clear message. Each
// has a twin in validation*.go; the cases in ../crd/testdata test both. hack/crdrules
// adds rules that markers cannot express: rules inside types of Kubernetes, rules
// about edits, and reserved settings of etcd.

// EtcdCluster is an etcd cluster that the etcd operator runs. The operator creates
// one pod for each member, joins the members one at a time, and replaces dead ones.
// It follows edits of the size, the version and other fields. Clients reach the
// cluster through the Service `<name>-client` on port 2379.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=etcdclusters,shortName=etcd,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.size,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Stage of the cluster's life: Creating, Running or Failed"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`,description="True while the cluster serves reads and writes"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyMembers`,description="Members that serve clients now"
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`,description="Members that the cluster should have"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`,description="etcd version that the cluster runs"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`,description="Why the cluster failed, or what it waits for"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 || oldSelf.hasValue()",optionalOldSelf=true,message="metadata.name must be at most 52 characters: pod names append 11 more, and the limit of a host name is 63",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.contains('.') || oldSelf.hasValue()",optionalOldSelf=true,message="metadata.name must not contain a dot: it names Services, which are single DNS labels",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]') || oldSelf.hasValue()",optionalOldSelf=true,message="metadata.name must start with a lowercase letter: it names Services, which must",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.service) || !has(self.spec.service.name) || self.spec.service.name != self.metadata.name || oldSelf.?spec.?service.?name.orValue("") == self.spec.service.name`,optionalOldSelf=true,message="service.name must not be the name of the cluster: the Service of the members' names has it",fieldPath=".spec.service.name"
type EtcdCluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata. The names of Services and pods begin with the name of
	// the cluster. It has at most 52 lowercase letters, digits and dashes, and a
	// letter first.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Desired state of the cluster. You can edit it at any time.
	Spec ClusterSpec `json:"spec"`

	// Last observed state of the cluster. Only the operator writes it.
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

// ClusterSpec is the desired state of a cluster.
type ClusterSpec struct {
	// Number of members, from 1 to 7. Prefer an odd number: a cluster of 4 tolerates
	// the loss of one member, as a cluster of 3 does. For an even size, the operator
	// emits a warning event. Change the size to grow or shrink the cluster. Members
	// join and leave one at a time.
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
	// leading v, such as 3.6.16 or v3.6.16. A suffix (v3.6.16-arm64) or a digest
	// (v3.6.16@sha256:...) is part of the image. Change it to upgrade the members in place,
	// one at a time. Without a value, a running cluster keeps its version, also when
	// the operator's default changes. Default: 3.6.16.
	// +optional
	// +kubebuilder:validation:MaxLength=136
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})(-(0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]{0,8}|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?(@sha256:[0-9a-f]{64})?$')",message="version must be a full semantic version such as 3.6.16 or v3.6.16: a tag like latest or a shortened 3.6 does not say which etcd to run"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?[0-9]+[.]') || self.matches('^v?3[.][1-9]')",message="version must be a 3.x release of etcd, 3.1 or later"
	Version string `json:"version,omitempty"`

	// While true, the operator neither changes members nor replaces dead ones, and
	// sets status.controlPaused. etcd continues to serve. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Template of the members' pods. Running members follow an edit one at a time; the
	// cluster keeps its quorum.
	// +optional
	Pod *PodPolicy `json:"pod,omitempty"`

	// Encryption and authentication by certificates, between members, between clients
	// and members, or both. Default: no TLS. You cannot switch TLS on or off after
	// creation, because it changes the members' URLs. You can change the names and
	// contents of the Secrets.
	// +optional
	TLS *TLSPolicy `json:"TLS,omitempty"`

	// User as which the operator logs in to etcd. A cluster without authentication needs
	// none.
	// +optional
	Auth *AuthPolicy `json:"auth,omitempty"`

	// Running etcd that the cluster takes over while clients use it, or whose data it
	// copies. The cluster does not start empty then. You can set it at creation only, and
	// remove it when the import is complete. A deletion of the EtcdCluster takes the
	// import back: with the method Join before importFrom.commit, and with Copy before the
	// new cluster serves.
	// +optional
	ImportFrom *ImportSource `json:"importFrom,omitempty"`

	// Properties of the client Service.
	// +optional
	Service *ServicePolicy `json:"service,omitempty"`

	// Recovery after the loss of the quorum. Default: a person chooses a way out.
	// +optional
	Recovery *RecoveryPolicy `json:"recovery,omitempty"`

	// If true, a PodDisruptionBudget protects the quorum from node drains. A cluster
	// of fewer than 3 members has no budget, because it would block each drain.
	// Default: true.
	// +optional
	PodDisruptionBudget *bool `json:"podDisruptionBudget,omitempty"`

	// PriorityClass of the members' pods, which must exist. Default: that of the
	// Kubernetes cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be the name of a PriorityClass: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// PodPolicy is the template of the members' pods.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tmpfs) || !self.tmpfs || !has(self.persistentVolumeClaimSpec)",message="tmpfs and persistentVolumeClaimSpec exclude each other: data is kept either in memory or on volumes",fieldPath=".tmpfs"
// +kubebuilder:validation:XValidation:rule="!has(self.etcdEnv) || !has(self.extraArgs) || self.extraArgs.all(a, !self.etcdEnv.exists(e, e.name == 'ETCD_' + a.split('=')[0].substring(2).upperAscii().replace('-', '_')))",message="extraArgs and etcdEnv must not both make a setting: etcd does not start with a flag and a variable for the same",fieldPath=".extraArgs"
type PodPolicy struct {
	// Further labels of the pods, and of new volumes. The key `app` and keys that
	// begin with `etcd_` are reserved: the operator finds its pods by them. The
	// operator applies an edit to running pods in place.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != 'app' && !k.startsWith('etcd_'))",message="labels must not contain the key app or keys that begin with etcd_: the operator finds its pods by them"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="labels must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="labels must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Further annotations of the pods. The key `etcd.version` and keys that begin with
	// `etcd.database.coreos.com/` are reserved for the operator. The operator applies
	// an edit to running pods in place.
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

	// Deprecated: use affinity or topologySpreadConstraints. If true and affinity is
	// unset, no two members run on the same node. Default: false.
	// +optional
	AntiAffinity bool `json:"antiAffinity,omitempty"`

	// PriorityClass of the members' pods, if `spec.priorityClassName` is unset.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="priorityClassName must be the name of a PriorityClass: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Taints of nodes that the pods tolerate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Spread of the members over nodes, zones or other domains. Default: an even
	// spread over nodes and zones, if possible. An empty list sets no constraints.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitzero"`

	// CPU and memory of the etcd container and of the init container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Environment variables of the etcd container, such as
	// ETCD_AUTO_COMPACTION_RETENTION. The operator refuses variables of its own
	// settings: names, URLs, data directory, bootstrap and certificates.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	EtcdEnv []corev1.EnvVar `json:"etcdEnv,omitempty"`

	// Further command line arguments of etcd, each in the form
	// `--flag=value`, such as `--quota-backend-bytes=8589934592`. The operator refuses
	// flags of its own settings.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.matches('^--[a-z][a-z0-9-]*='))",message="extraArgs must have the form --flag=value, such as --quota-backend-bytes=8589934592 or --pre-vote=true"
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, b.split('=')[0] == a.split('=')[0]))",message="extraArgs must not contain a flag twice"
	ExtraArgs []string `json:"extraArgs,omitempty"`

	// Volume for the data of each member. A member whose pod is lost returns on its
	// volume with its data, also when all pods are lost at once. Default: an emptyDir,
	// whose data is lost with its pod. A larger `resources.requests.storage` expands
	// the volumes, if their StorageClass allows it. Any other edit replaces the
	// members one at a time.
	// +optional
	PersistentVolumeClaimSpec *corev1.PersistentVolumeClaimSpec `json:"persistentVolumeClaimSpec,omitempty"`

	// If true, members without a persistentVolumeClaimSpec keep their data in memory.
	// The data counts as memory of the pod, and is lost when the node restarts.
	// Default: false.
	// +optional
	Tmpfs bool `json:"tmpfs,omitempty"`

	// Security context of the pods. Unset fields follow the restricted Pod Security
	// Standard: a non-root user and the runtime's default seccomp profile.
	// +optional
	SecurityContext *corev1.PodSecurityContext `json:"securityContext,omitempty"`

	// Secrets with credentials for the registries of the pods' images.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// ServiceAccount of the pods, which must exist. The pods do not mount its token,
	// because etcd does not call Kubernetes. Default: default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serviceAccountName must be the name of a ServiceAccount: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Image of the init container check-dns, which delays etcd until the pod's own
	// name resolves. The image must contain /bin/sh, nslookup, sed and grep, as
	// busybox does. Default: the operator's own image, with which the pods of several
	// members start at the same time. An edit applies to new pods.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*$')",message="busyboxImage must be an image reference such as busybox:1.28, without spaces or letters of other scripts"
	BusyboxImage string `json:"busyboxImage,omitempty"`

	// Seconds until the container in which a member waits before etcd starts fails and
	// restarts. The member waits until its name resolves, or until the other members
	// expect it. 0: no limit. Default: 120. While other members answer, and the operator has
	// yet to add this one, there is no limit. An edit applies to new pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DNSTimeoutInSecond *int64 `json:"DNSTimeoutInSecond,omitempty"`

	// Suffix of the members' names in their URLs, such as `.cluster.local`, for
	// clients that resolve names without a search list. You cannot change it after
	// creation. Default: none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[.]?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*[.]?$')",message="ClusterDomain must be a DNS domain such as .cluster.local, in lowercase letters, digits, dashes and dots"
	ClusterDomain string `json:"ClusterDomain,omitempty"`
}

// AuthPolicy is about etcd's authentication of clients by user and password.
type AuthPolicy struct {
	// Secret with the keys `username` and `password`: a user of etcd with the role
	// root. The operators and kubectl etcd log in as this user if etcd asks for one.
	// They read the Secret every 30 seconds. With TLS, the common name of
	// TLS.static.operatorSecret can name the user instead.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="credentialsSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	CredentialsSecret string `json:"credentialsSecret"`

	// If true, the operator creates the user root with the password in the Secret and
	// enables authentication, in a new cluster before clients reach it. It needs etcd
	// 3.5 or later. It follows later changes of the password in the Secret. If false,
	// the operator disables authentication. Default: neither; etcd stays as it is.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// TLSPolicy names the certificates of members and clients.
type TLSPolicy struct {
	// Certificates in Secrets that you manage.
	// +optional
	Static *StaticTLS `json:"static,omitempty"`
}

// StaticTLS names the Secrets with certificates. Each Secret has either the keys that
// its field lists, or `tls.crt`, `tls.key` and `ca.crt`, as cert-manager creates them.
//
// +kubebuilder:validation:XValidation:rule="(has(self.operatorSecret) && size(self.operatorSecret) > 0) == (has(self.member) && has(self.member.serverSecret) && size(self.member.serverSecret) > 0)",message="operatorSecret and member.serverSecret belong together: without the one the operator could not talk to the members, without the other they would not ask it for a certificate"
type StaticTLS struct {
	// Certificates of the members.
	// +optional
	Member *MemberSecret `json:"member,omitempty"`

	// Secret with the operator's client certificate: `etcd-client.crt`,
	// `etcd-client.key` and `etcd-client-ca.crt`. Required with member.serverSecret.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="operatorSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	OperatorSecret string `json:"operatorSecret,omitempty"`

	// If true, the operator does not verify the members' server certificates. The
	// members still verify clients and each other. Default: false.
	// +optional
	AllowSelfSignedCertificates bool `json:"allowSelfSignedCertificates,omitempty"`
}

// MemberSecret names the Secrets with the members' certificates.
type MemberSecret struct {
	// Secret with the certificate for connections between members: `peer.crt`,
	// `peer.key` and `peer-ca.crt`. It must be valid for `*.<name>.<namespace>.svc`
	// and for `*.<name>.<namespace>.svc.cluster.local`, with the domain of your
	// Kubernetes: members look up the name of each caller. It must allow use by
	// servers and clients. Default: no TLS between members.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="peerSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	PeerSecret string `json:"peerSecret,omitempty"`

	// Secret with the members' server certificate, and the CA of clients: `server.crt`,
	// `server.key` and `server-ca.crt`. It must be valid for
	// `*.<name>.<namespace>.svc`, and for the names that clients use, such as
	// `<name>-client.<namespace>.svc`. Default: no TLS for clients.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="serverSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	ServerSecret string `json:"serverSecret,omitempty"`
}

// ServicePolicy contains the properties of the client Service.
type ServicePolicy struct {
	// Name of the Service. Default: `<name of the cluster>-client`. After an edit, the
	// operator deletes the Service with the old name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"
	Name string `json:"name,omitempty"`

	// Further annotations of the Service.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('etcd.database.coreos.com/'))",message="annotations must not contain keys that begin with etcd.database.coreos.com/: the operator keeps its notes there"
	// +kubebuilder:validation:XValidation:rule="!('service.beta.kubernetes.io/load-balancer-source-ranges' in self)",message="annotations must not contain service.beta.kubernetes.io/load-balancer-source-ranges: Kubernetes takes it for Services of type LoadBalancer alone"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?([.][A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="annotations must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(bytes(self[k]))).sum() <= 200000",message="annotations must hold at most 200000 bytes: Kubernetes keeps no more than 256 KiB, and others add theirs"
	Annotations map[string]string `json:"annotations,omitempty"`

	// Further labels that a member's pod must have for the Service to reach it.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="selector must have keys as Kubernetes knows them: at most 63 letters, digits, dashes, dots and underscores, after an optional DNS name and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$'))",message="selector must have values as Kubernetes knows them: letters, digits, dashes, dots and underscores, with a letter or digit first and last"
	Selector map[string]LabelValue `json:"selector,omitempty"`

	// Services of the namespace that the operator did not create, such as those of an etcd
	// that spec.importFrom takes over. They lead to the members with a vote too. The
	// operator keeps EndpointSlices for them, and does not edit the Services. Outside of an
	// import, the pods that such a Service selects must not be those of another etcd. A
	// Service can have the bridge of one EtcdCluster.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Bridges []ServiceBridge `json:"bridges,omitempty"`
}

// ServiceBridge names a Service that the operator did not create, and that leads to the members.
type ServiceBridge struct {
	// Name of the Service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lowercase letters, digits and dashes, with a letter first, and no dash last"
	Name string `json:"name"`

	// Host names that lead to a member each, if the Service is headless: `old-0` for
	// `old-0.<name of the Service>`. During an import, a host name waits until the former
	// member of that name has left.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(h, h.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))",message="hostnames must be DNS labels: lowercase letters, digits and dashes, with a letter or digit first and last"
	Hostnames []string `json:"hostnames,omitempty"`
}

// LabelValue has at most 63 letters, digits, dashes, dots and underscores, with a
// letter or digit first and last.
// ---
//
// It is an alias, so that maps of labels remain maps of strings. The schema needs a
// name for the limit.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue = string
