// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// A Reason says why a step is taken, why none is, or why the cluster is not as specified.
// Code depends on its Kind. People read its text, on which no code depends.
type Reason struct {
	Kind ReasonKind
	// Detail ends the text; the Kind begins it.
	Detail string
}

// ReasonKind is what code has to know of a Reason.
type ReasonKind int

const (
	// OtherReason has no text of its own: Detail is all of it.
	OtherReason ReasonKind = iota

	// AsSpecified says that there is nothing to do.
	AsSpecified
	// BeingDeleted says that the operator changes nothing because the EtcdCluster is being deleted.
	BeingDeleted
	// Paused says that the operator changes nothing because of spec.paused.
	Paused
	// SpecInvalid says that the operator changes nothing because it can't follow the spec.
	SpecInvalid
	// SpecRefused says that the operator does not follow the spec.
	SpecRefused
	// VersionRefused says that the operator does not follow spec.version.
	VersionRefused
	// RestoreHeld says that nobody knows what the first member is to start on.
	RestoreHeld
	// WrongImage says that the tag of an image names another version than it holds.
	WrongImage
	// PodsRefused says that the API server takes no pods of members.
	PodsRefused
	// CertificatesHeld says that the operator makes no members for want of certificates.
	CertificatesHeld
	// EarlierPods says that pods of an earlier cluster of this name are in the way.
	EarlierPods
	// PodGone says that the member's pod is gone. The API server is asked once more before
	// the member is removed for it.
	PodGone
	// Standstill says what the operator has waited for too long.
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
		return "the first member is not made, for it is to start on a backup: "
	case WrongImage:
		return "the tag of an image is wrong: "
	case PodsRefused:
		return "Kubernetes refuses the pods of members: "
	case CertificatesHeld:
		return "no members are made: "
	case EarlierPods:
		return "pods of an earlier cluster of this name are still there"
	case PodGone:
		return "its pod is gone"
	case Standstill:
		return "for more than a minute the operator has been waiting "
	}
	return ""
}

func (r Reason) String() string { return r.Kind.text() + r.Detail }

// IsZero reports whether r gives no reason.
func (r Reason) IsZero() bool { return r == Reason{} }

// because is a Reason on which no code depends.
func because(text string) Reason { return Reason{Detail: text} }
