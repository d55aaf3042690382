// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestOwnersAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"", "0", "12379", "12379:0", "65534:65534"} {
		if got := ParseOwner(text).String(); got != text {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	for _, text := range []string{":", "a", "-1", "1:", "1:x", "99999999999", "1:2:3", " 1"} {
		if o := ParseOwner(text); o.Known {
			t.Errorf("%q is read as %s", text, o)
		}
	}
}

func TestAMemberRunsAsTheUserOfItsData(t *testing.T) {
	fork := Owner{Known: true, User: 12379, HasGroup: true, Group: 12379}
	for name, c := range map[string]struct {
		users                *corev1.PodSecurityContext
		owner                Owner
		user, group, fsGroup int64 // -1: unset
		nonRoot              bool
	}{
		"its own":                           {nil, Owner{}, 65532, 65532, 65532, true},
		"that of the fork":                  {nil, fork, 12379, 12379, 12379, true},
		"root, as in v0.9.4":                {nil, Owner{Known: true, HasGroup: true}, 0, 0, 0, false},
		"one whose group is unknown":        {nil, Owner{Known: true, User: 7}, 7, -1, 65532, true},
		"the user's word counts more":       {&corev1.PodSecurityContext{RunAsUser: ptr.To[int64](9)}, fork, 9, -1, 65532, true},
		"the user's group stays":            {&corev1.PodSecurityContext{FSGroup: ptr.To[int64](9)}, fork, 12379, 12379, 9, true},
		"root is refused by the user":       {&corev1.PodSecurityContext{RunAsNonRoot: new(true)}, Owner{Known: true}, 65532, 65532, 65532, true},
		"another than root is not excluded": {&corev1.PodSecurityContext{RunAsNonRoot: new(true)}, fork, 12379, 12379, 12379, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := joiner(clusterWith("3.6.16", &api.PodPolicy{SecurityContext: c.users}))
			s.pod.Owner = c.owner
			got := s.build(t).Spec.SecurityContext
			if user, group, fsGroup := ptr.Deref(got.RunAsUser, -1), ptr.Deref(got.RunAsGroup, -1), ptr.Deref(got.FSGroup, -1); user != c.user || group != c.group || fsGroup != c.fsGroup {
				t.Errorf("user %d, group %d, fsGroup %d, want %d, %d, %d", user, group, fsGroup, c.user, c.group, c.fsGroup)
			}
			if ptr.Deref(got.RunAsNonRoot, false) != c.nonRoot {
				t.Errorf("runAsNonRoot %v", got.RunAsNonRoot)
			}
		})
	}
}

func TestCheckDNSNamesTheOwnerOfForeignData(t *testing.T) {
	const text = "the data in /var/etcd/data belongs to user 12379 and group 100, and this pod runs as user 65532: …"
	for name, c := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"it has just ended":                       {corev1.ContainerStatus{State: terminated(1, text)}, "12379:100"},
		"it waits to restart":                     {corev1.ContainerStatus{LastTerminationState: terminated(1, text)}, "12379:100"},
		"for another reason":                      {corev1.ContainerStatus{State: terminated(1, "no such host")}, ""},
		"it has succeeded":                        {corev1.ContainerStatus{State: terminated(0, text)}, ""},
		"somebody has given the data to its user": {corev1.ContainerStatus{State: terminated(0, ""), LastTerminationState: terminated(1, text)}, ""},
		"another reason came after that":          {corev1.ContainerStatus{State: terminated(1, "no such host"), LastTerminationState: terminated(1, text)}, ""},
		"it has not begun":                        {corev1.ContainerStatus{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.status.Name = CheckDNSContainer
			pod := &corev1.Pod{
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: EtcdContainer}}},
				Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{c.status}},
			}
			if got := PodStateOf(pod).DataOwner.String(); got != c.want {
				t.Errorf("owner %q, want %q", got, c.want)
			}
		})
	}
}

// A disk was mounted late, after a reboot. The member ran with its data again, and still counted as one
// without data: Kubernetes remembers the end before the last one.
func TestDataThatIsBackIsNotMissed(t *testing.T) {
	const text = "the volume holds no data of etcd in /var/etcd/data: …"
	for name, c := range map[string]struct {
		checks, etcd corev1.ContainerStatus
		want         bool
	}{
		"it has just ended":           {checks: corev1.ContainerStatus{State: terminated(1, text)}, want: true},
		"it waits to restart":         {checks: corev1.ContainerStatus{LastTerminationState: terminated(1, text)}, want: true},
		"it has found the data":       {checks: corev1.ContainerStatus{State: terminated(0, ""), LastTerminationState: terminated(1, text)}},
		"the launcher has just ended": {etcd: corev1.ContainerStatus{State: terminated(1, text)}, want: true},
		"etcd has ended after it":     {etcd: corev1.ContainerStatus{State: terminated(1, "panic"), LastTerminationState: terminated(1, text)}},
		"etcd ended before it":        {etcd: corev1.ContainerStatus{State: terminated(1, text), LastTerminationState: terminated(1, "panic")}, want: true},
		"etcd runs":                   {etcd: corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: terminated(1, text)}},
	} {
		t.Run(name, func(t *testing.T) {
			c.checks.Name, c.etcd.Name = CheckDNSContainer, EtcdContainer
			pod := &corev1.Pod{
				Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: EtcdContainer}}},
				Status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{c.checks}, ContainerStatuses: []corev1.ContainerStatus{c.etcd}},
			}
			if got := PodStateOf(pod).Dataless; got != c.want {
				t.Errorf("without data: %t, want %t", got, c.want)
			}
		})
	}
}

func terminated(code int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
}
