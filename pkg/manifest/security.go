// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import corev1 "k8s.io/api/core/v1"

// nonRootUser runs etcd and check-dns: neither needs more than the data volume,
// which its group may write to.
const nonRootUser = 65532

// podSecurity is the user's security context; what is unset in it is what the
// restricted Pod Security Standard asks for. A user who names a user ID has a
// group in mind, that of the image.
func podSecurity(users *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	s := corev1.PodSecurityContext{}
	if users != nil {
		s = *users
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
