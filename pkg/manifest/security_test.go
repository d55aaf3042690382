// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestTheSecurityContextIsFilledUp(t *testing.T) {
	runtimeDefault := &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	nobody, root, nonRoot := ptr.To[int64](65532), ptr.To[int64](0), ptr.To(true)
	for name, tc := range map[string]struct {
		users *corev1.PodSecurityContext
		want  corev1.PodSecurityContext
	}{
		"nothing": {nil, corev1.PodSecurityContext{
			RunAsNonRoot: nonRoot, RunAsUser: nobody, RunAsGroup: nobody, FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"an empty one": {&corev1.PodSecurityContext{}, corev1.PodSecurityContext{
			RunAsNonRoot: nonRoot, RunAsUser: nobody, RunAsGroup: nobody, FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"a user has the group of the image": {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9000)}, corev1.PodSecurityContext{
			RunAsNonRoot: nonRoot, RunAsUser: ptr.To[int64](9000), FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"or the group that is named": {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9000), RunAsGroup: ptr.To[int64](1)}, corev1.PodSecurityContext{
			RunAsNonRoot: nonRoot, RunAsUser: ptr.To[int64](9000), RunAsGroup: ptr.To[int64](1), FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"a group alone": {&corev1.PodSecurityContext{RunAsGroup: ptr.To[int64](1)}, corev1.PodSecurityContext{
			RunAsNonRoot: nonRoot, RunAsUser: nobody, RunAsGroup: ptr.To[int64](1), FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"root, as v0.9.4 ran": {&corev1.PodSecurityContext{RunAsUser: root}, corev1.PodSecurityContext{
			RunAsUser: root, FSGroup: nobody, SeccompProfile: runtimeDefault,
		}},
		"what the user says stays": {&corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(false), FSGroup: ptr.To[int64](5), SupplementalGroups: []int64{7},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		}, corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(false), RunAsUser: nobody, RunAsGroup: nobody, FSGroup: ptr.To[int64](5), SupplementalGroups: []int64{7},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.Marshal(joiner(clusterWith("3.6.16", &api.PodPolicy{SecurityContext: tc.users})).build(t).Spec.SecurityContext)
			if err != nil {
				t.Fatal(err)
			}
			want, err := yaml.Marshal(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestReservedIDsReplaceTheOperatorsOwn(t *testing.T) {
	reserved := ReservedIDs{User: ptr.To[int64](1000650000), FSGroup: ptr.To[int64](1000660000)}
	for name, tc := range map[string]struct {
		users                *corev1.PodSecurityContext
		owner                Owner
		reserved             ReservedIDs
		user, group, fsGroup int64 // -1: unset
	}{
		"the platform decides":     {nil, Owner{}, reserved, 1000650000, -1, 1000660000},
		"the spec counts more":     {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9), FSGroup: ptr.To[int64](8)}, Owner{}, reserved, 9, -1, 8},
		"a user of the spec alone": {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9)}, Owner{}, reserved, 9, -1, 1000660000},
		"data counts more":         {nil, Owner{Known: true, User: 7, HasGroup: true, Group: 7}, reserved, 7, 7, 7},
		"no users are reserved":    {nil, Owner{}, ReservedIDs{FSGroup: reserved.FSGroup}, 65532, 65532, 1000660000},
	} {
		t.Run(name, func(t *testing.T) {
			s := joiner(clusterWith("3.6.16", &api.PodPolicy{SecurityContext: tc.users}))
			s.pod.Owner, s.pod.Reserved = tc.owner, tc.reserved
			got := s.build(t).Spec.SecurityContext
			if user, group, fsGroup := ptr.Deref(got.RunAsUser, -1), ptr.Deref(got.RunAsGroup, -1), ptr.Deref(got.FSGroup, -1); user != tc.user || group != tc.group || fsGroup != tc.fsGroup {
				t.Errorf("user %d, group %d, fsGroup %d, want %d, %d, %d", user, group, fsGroup, tc.user, tc.group, tc.fsGroup)
			}
			if !ptr.Deref(got.RunAsNonRoot, false) {
				t.Error("it may run as root")
			}
		})
	}
}

func TestNoContainerMayGainPrivileges(t *testing.T) {
	for name, s := range shapes() {
		spec := s.build(t).Spec
		for _, c := range append(spec.InitContainers, spec.Containers...) {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%s: container %s has the security context %v", name, c.Name, s)
			}
		}
	}
}
