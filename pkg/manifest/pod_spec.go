// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// MemberPod describes a pod to build.
type MemberPod struct {
	Name    string
	Version string
	Seed    bool
	Token   string // of the new cluster that the seed starts
	// Source is the backup that a seed starts on; nil: it starts empty.
	Source         *api.SeedBackup
	InitialCluster etcd.InitialCluster
	// Addresses are those of members that a joining one asks, by host name. A name that
	// is looked up before it is published stays unknown where the DNS keeps denials.
	Addresses map[string]string
	// Reach are the peer URLs of members that must answer in the pod's own network before the
	// operator adds the member.
	Reach []string
	// Volume is true for a pod on a PersistentVolumeClaim of its name.
	Volume bool
	// Rejoins is true for a member that returns with its data: without data it must not start,
	// because it could vote twice.
	Rejoins bool
	// LiteralTag is as in Image.
	LiteralTag bool
	// Owner is the user whose files its data is; zero: the usual one.
	Owner Owner
	// Reserved are the IDs that its namespace reserves for pods.
	Reserved ReservedIDs
}
