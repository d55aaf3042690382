// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// A Reason says why the operator takes a step or none, or why the cluster is not as specified.
// Code depends on its Kind. Its text is for people, and no code depends on it.
type Reason struct {
	Kind ReasonKind
	// Detail ends the text; the Kind begins it.
	Detail string
}

// ReasonKind is the part of a Reason on which code depends.
type ReasonKind int

const (
	// OtherReason has no text of its own, only the Detail.
	OtherReason ReasonKind = iota

	// AsSpecified means that there is nothing to do.
	AsSpecified
	// BeingDeleted means that the operator changes nothing because the EtcdCluster is being
	// deleted.
	BeingDeleted
	// Paused means that the operator changes nothing because of spec.paused.
	Paused
	// SpecInvalid means that the operator changes nothing because it can't follow the spec.
	SpecInvalid
	// SpecRefused means that the operator does not follow the spec.
	SpecRefused
	// VersionRefused means that the operator does not follow spec.version.
	VersionRefused
	// RestoreHeld means that the first member's backup is unknown.
	RestoreHeld
	// WrongImage means that an image holds another version than its tag says.
	WrongImage
	// PodsRefused means that the API server refuses pods of members.
	PodsRefused
	// PodsUnlabelled means that pods lack the labels by which Services select them.
	PodsUnlabelled
	// VolumesDeleted means that somebody has deleted volumes of running members.
	VolumesDeleted
	// CertificatesHeld means that the operator creates no members without certificates.
	CertificatesHeld
	// MembersHeld means that the operator adds, restarts and replaces no members, because they refuse
	// each other's certificates.
	MembersHeld
	// LoginRefused means that etcd asks the operator for a user, and it has none that etcd
	// accepts.
	LoginRefused
	// AuthenticationHeld means that the operator can't enable authentication.
	AuthenticationHeld
	// ServiceRefused means that the client Service can't be written.
	ServiceRefused
	// BudgetRefused means that the PodDisruptionBudget can't be written.
	BudgetRefused
	// BridgeHeld means that a Service of somebody else can't lead to the members.
	BridgeHeld
	// WriteUndone means that admission undoes what the operator writes, or that Kubernetes refuses it.
	WriteUndone
	// StrangePods means that pods of others have the labels by which Services select members.
	StrangePods
	// EarlierPods means that pods of an earlier cluster of this name still exist.
	EarlierPods
	// PodGone means that the member's pod is gone. The operator checks that again at the API
	// server before it removes the member.
	PodGone
	// ImportHeld means that an import can't begin or continue.
	ImportHeld
	// ImportJoined means that an import waits for the user's word.
	ImportJoined
	// ImportPrepared means that a copy waits for the user's word.
	ImportPrepared
	// Standstill means that the operator has waited too long.
	Standstill
)

func (k ReasonKind) text() string {
	switch k {
	case AsSpecified:
		return "the cluster is as specified"
	case BeingDeleted:
		return "the EtcdCluster is being deleted"
	case Paused:
		return "spec.paused is true"
	case SpecInvalid:
		return "the spec is invalid: "
	case SpecRefused:
		return "the spec is refused: "
	case VersionRefused:
		return "the version is refused: "
	case RestoreHeld:
		return "the operator creates no first member, because it must start on a backup: "
	case WrongImage:
		return "the tag of an image is wrong: "
	case PodsRefused:
		return "Kubernetes refuses the pods of members: "
	case PodsUnlabelled:
		return "no Service selects the pods that have lost their labels: "
	case VolumesDeleted:
		return "volumes of running members are being deleted: "
	case CertificatesHeld:
		return "the operator creates no members: "
	case MembersHeld:
		return "the operator adds, restarts and replaces no members: "
	case LoginRefused:
		return "the operator can't log in to etcd: "
	case AuthenticationHeld:
		return "the operator can't enable authentication: "
	case ServiceRefused:
		return "the client Service is not as specified: "
	case BudgetRefused:
		return "the PodDisruptionBudget is not as specified: "
	case BridgeHeld:
		return "spec.service.bridges is not as specified: "
	case WriteUndone:
		return "what the operator writes has no effect: "
	case StrangePods:
		return "the client Service can lead to pods that are no members, because they have the labels of this cluster: "
	case EarlierPods:
		return "pods of an earlier cluster of this name are still there"
	case PodGone:
		return "its pod is gone"
	case ImportHeld:
		return "the import waits: "
	case ImportJoined:
		return "the members have joined the imported etcd: "
	case ImportPrepared:
		return "the copy is prepared: "
	case Standstill:
		return "for more than a minute the operator has been waiting "
	}
	return ""
}

func (r Reason) String() string { return r.Kind.text() + r.Detail }

// IsZero reports whether r gives no reason.
func (r Reason) IsZero() bool { return r == Reason{} }

// because returns a Reason on which no code depends.
func because(text string) Reason { return Reason{Detail: text} }
