// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// ImportFinalizer is on an EtcdCluster while its members belong to another etcd. A deletion then
// first takes them out of that etcd again.
const ImportFinalizer = OperatorAnnotations + "import"

// ImportSource is a running etcd that the cluster takes over. The members of the cluster join it
// and get votes; then its former members leave. Clients write throughout.
type ImportSource struct {
	// Client URLs of the members of the running etcd, one of each, such as
	// `http://etcd-0.etcd.default.svc:2379`. The operator and the pods of the members
	// must reach them, and the members each other's peer URLs.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^https?://[^/?#@ ]+:[0-9]+$'))",message="endpoints must be client URLs with a port, such as http://etcd-0.etcd:2379"
	Endpoints []string `json:"endpoints"`

	// Secret with a client certificate for the endpoints: `etcd-client.crt`,
	// `etcd-client.key` and `etcd-client-ca.crt`, or `tls.crt`, `tls.key` and `ca.crt`.
	// Default: that of TLS.static.operatorSecret. A user of the running etcd comes from
	// spec.auth.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="clientTLSSecret must be the name of a Secret: lowercase letters, digits, dashes and dots, with a letter or digit first and last"
	ClientTLSSecret string `json:"clientTLSSecret,omitempty"`

	// If true, the former members leave once the new ones have joined. There is no way
	// back from there. Before, the former members are a quorum without the new ones, and
	// a deletion of the EtcdCluster restores their membership. Default: false; the
	// operator waits.
	// +optional
	Commit bool `json:"commit,omitempty"`
}

// ImportPhase is the stage of an import.
type ImportPhase string

// The phases of an import.
const (
	// ImportChecking means that the operator changes nothing yet: it looks for obstacles.
	ImportChecking ImportPhase = "Checking"
	// ImportJoining means that members join the running etcd.
	ImportJoining ImportPhase = "Joining"
	// ImportJoined means that all members that can join before the commit have joined. The
	// operator waits for importFrom.commit.
	ImportJoined ImportPhase = "Joined"
	// ImportMoving means that the former members leave.
	ImportMoving ImportPhase = "Moving"
	// ImportCompleted means that no former member is left.
	ImportCompleted ImportPhase = "Completed"
	// ImportTakingBack means that the members leave the running etcd again, because
	// somebody deletes the EtcdCluster.
	ImportTakingBack ImportPhase = "TakingBack"
)

// ImportStatus is the state of an import.
type ImportStatus struct {
	// Checking, Joining, Joined, Moving, Completed or TakingBack.
	Phase ImportPhase `json:"phase"`

	// Obstacles to the members' joining, with the way out. The operator looks again
	// every 15 seconds.
	// +optional
	// +listType=atomic
	Obstacles []string `json:"obstacles,omitempty"`

	// ID of the running etcd in hexadecimal, as etcdctl prints it. It becomes the ID of
	// the cluster.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Members of the running etcd at the beginning. The operator removes no others.
	// +optional
	// +listType=atomic
	Members []ImportedMember `json:"members,omitempty"`

	// Time of the commit (RFC 3339, UTC). From here on, the former members leave.
	// +optional
	CommitDate string `json:"commitDate,omitempty"`

	// Time at which the last former member had left (RFC 3339, UTC).
	// +optional
	CompletionDate string `json:"completionDate,omitempty"`
}

// ImportedMember is a member of the running etcd before the import.
type ImportedMember struct {
	// ID of the member in hexadecimal, as etcdctl prints it.
	ID string `json:"id"`

	// Name of the member.
	// +optional
	Name string `json:"name,omitempty"`
}

// Begun reports whether the operator has recorded which etcd the cluster takes over. A nil status
// has not begun.
func (s *ImportStatus) Begun() bool { return s != nil && s.ClusterID != "" }

// Has reports whether a member of this ID was in the running etcd at the beginning.
func (s *ImportStatus) Has(id string) bool {
	for _, m := range s.Members {
		if m.ID == id {
			return true
		}
	}
	return false
}
