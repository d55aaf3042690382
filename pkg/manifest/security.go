// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import corev1 "k8s.io/api/core/v1"

// nonRootUser runs etcd and check-dns: they only need the data volume, which their group may
// write to.
const nonRootUser = 65532

// ReservedIDs are the user and the group of volumes that a platform reserves for the pods of a
// namespace: it refuses others. Nil: it reserves none.
type ReservedIDs struct{ User, FSGroup *int64 }

// podSecurity returns the user's security context, completed by the requirements of the
// restricted Pod Security Standard. If the user sets a user ID, the group stays unset: the
// image may define it. Data of another user makes that one the pod's. Reserved IDs take the place
// of the operator's own.
func podSecurity(users *corev1.PodSecurityContext, data Owner, reserved ReservedIDs) *corev1.PodSecurityContext {
	s := corev1.PodSecurityContext{}
	if users != nil {
		s = *users
	}
	if data.Known && s.RunAsUser == nil {
		s.RunAsUser = &data.User
		if data.HasGroup && s.RunAsGroup == nil {
			s.RunAsGroup = &data.Group
		}
		if data.HasGroup && s.FSGroup == nil {
			s.FSGroup = &data.Group
		}
	}
	if s.RunAsUser == nil {
		s.RunAsUser = reserved.User
	}
	if s.RunAsUser == nil {
		s.RunAsUser = new(int64(nonRootUser))
		if s.RunAsGroup == nil {
			s.RunAsGroup = new(int64(nonRootUser))
		}
	}
	if s.RunAsNonRoot == nil && *s.RunAsUser != 0 {
		s.RunAsNonRoot = new(true)
	}
	if s.FSGroup == nil {
		s.FSGroup = reserved.FSGroup
	}
	if s.FSGroup == nil {
		s.FSGroup = new(int64(nonRootUser))
	}
	if s.SeccompProfile == nil {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return &s
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
