// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2

// ImportFinalizer is on an EtcdCluster while an import changes another etcd. A deletion then first
// takes the change back: members leave that etcd, or it accepts writes again.
const ImportFinalizer = OperatorAnnotations + "import"

// ImportMethod is how a cluster takes over a running etcd.
// +kubebuilder:validation:Enum="";Join;Copy
type ImportMethod string

// The methods of an import.
const (
	// ImportJoin means that the members join the running etcd. Clients write throughout.
	ImportJoin ImportMethod = "Join"
	// ImportCopy means that a new cluster starts on a copy of the data, and that nobody writes
	// meanwhile.
	ImportCopy ImportMethod = "Copy"
)

// ImportSource is a running etcd that the cluster takes over. By the method Join, the members of
// the cluster join it and get votes; then its former members leave. By the method Copy, the running
// etcd stops all writes, and the cluster starts on its data.
type ImportSource struct {
	// How the cluster takes over: `Join` or `Copy`. With `Join`, clients write throughout.
	// With `Copy`, the commit stops all writes until the new cluster serves the data;
	// status.import.writeStop announces and measures the time. Nobody can change the method
	// once the import has begun. Default: `Join`.
	// +optional
	Method ImportMethod `json:"method,omitempty"`

	// Client URLs of the members of the running etcd, one of each, such as
	// `http://etcd-0.etcd.default.svc:2379`. The operator and the pods of the members
	// must reach them. With the method Join, the members must also reach each other's
	// peer URLs.
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
	// a deletion of the EtcdCluster restores their membership. With the method Copy, the
	// running etcd refuses all writes from then on. A deletion before the new cluster
	// serves ends that. Default: false; the operator waits.
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
	// ImportPrepared means that nothing is in the way of a copy. The operator waits for
	// importFrom.commit.
	ImportPrepared ImportPhase = "Prepared"
	// ImportCopying means that the first member gets the data, and that nobody can write as soon as
	// status.import.writeStop has a beginDate.
	ImportCopying ImportPhase = "Copying"
	// ImportMoving means that the former members leave.
	ImportMoving ImportPhase = "Moving"
	// ImportCompleted means that no former member is left, or that the new cluster accepts writes.
	ImportCompleted ImportPhase = "Completed"
	// ImportTakingBack means that the members leave the running etcd again, or that it accepts
	// writes again, because somebody deletes the EtcdCluster.
	ImportTakingBack ImportPhase = "TakingBack"
)

// ImportStatus is the state of an import.
type ImportStatus struct {
	// With the method Join: Checking, Joining, Joined, Moving, Completed or TakingBack.
	// With Copy: Checking, Prepared, Copying, Completed or TakingBack.
	Phase ImportPhase `json:"phase"`

	// Method of the import that has begun, Join or Copy.
	// +optional
	Method ImportMethod `json:"method,omitempty"`

	// Obstacles to the import, with the way out. The operator looks again every 15
	// seconds.
	// +optional
	// +listType=atomic
	Obstacles []string `json:"obstacles,omitempty"`

	// ID of the running etcd in hexadecimal, as etcdctl prints it. With the method Join,
	// it becomes the ID of the cluster.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Members of the running etcd at the beginning. The operator removes no others, and
	// none with the method Copy.
	// +optional
	// +listType=atomic
	Members []ImportedMember `json:"members,omitempty"`

	// Time of the commit (RFC 3339, UTC). From here on, the former members leave. With the
	// method Copy, the first member starts, and the running etcd stops all writes when that
	// member waits for its data.
	// +optional
	CommitDate string `json:"commitDate,omitempty"`

	// The time without writes of the method Copy; absent with Join.
	// +optional
	WriteStop *ImportWriteStop `json:"writeStop,omitempty"`

	// Time at which the last former member had left, or the new cluster accepted writes
	// (RFC 3339, UTC).
	// +optional
	CompletionDate string `json:"completionDate,omitempty"`
}

// ImportWriteStop is the time in which nobody can write, since the running etcd refuses all writes
// and the new cluster does not accept them yet.
type ImportWriteStop struct {
	// How long it will take, in seconds, as the operator expects before the commit.
	// +optional
	ExpectedSeconds int64 `json:"expectedSeconds,omitempty"`

	// How the expectation was computed.
	// +optional
	Expectation string `json:"expectation,omitempty"`

	// Size of the running etcd's database in bytes at the check.
	// +optional
	DatabaseBytes int64 `json:"databaseBytes,omitempty"`

	// When the operator made the running etcd refuse writes (RFC 3339, UTC). The running
	// etcd has the alarm CORRUPT since then, which the operator has activated in the name
	// of no member. Absent before, and if nobody has stopped it.
	// +optional
	BeginDate string `json:"beginDate,omitempty"`

	// ID in hexadecimal in whose name the alarm is. No member has it.
	// +optional
	AlarmID string `json:"alarmID,omitempty"`

	// Revision of the last write that the running etcd has accepted. The new cluster
	// starts at exactly this revision.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// True if the running etcd may have accepted writes after the stop. Before 3.6, etcd does so
	// if its database reaches the quota meanwhile (alarm NOSPACE). The new cluster does not take
	// over then: delete the EtcdCluster, make room, and create it again.
	// +optional
	Lapsed bool `json:"lapsed,omitempty"`

	// How long it took until the new cluster accepted writes, in seconds.
	// +optional
	Seconds int64 `json:"seconds,omitempty"`
}

// ImportedMember is a member of the running etcd before the import.
type ImportedMember struct {
	// ID of the member in hexadecimal, as etcdctl prints it.
	ID string `json:"id"`

	// Name of the member.
	// +optional
	Name string `json:"name,omitempty"`
}

// Copies reports whether the method is Copy.
func (s *ImportSource) Copies() bool { return s != nil && s.Method == ImportCopy }

// Copies reports whether an import that has begun is a copy.
func (s *ImportStatus) Copies() bool { return s != nil && s.Method == ImportCopy }

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
