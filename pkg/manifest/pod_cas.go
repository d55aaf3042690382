// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// heldCAs returns the CAs that the etcd of a container has read; "" if unknown. A container that has
// restarted since the note may have read others.
func heldCAs(pod *corev1.Pod, s corev1.ContainerStatus) string {
	cas, restarts, _ := strings.Cut(pod.Annotations[PeerCAsAnnotation], " ")
	if cmp.Or(restarts, "0") != strconv.Itoa(int(s.RestartCount)) {
		return ""
	}
	return cas
}

// knownCAs returns what to note on a pod whose template has not changed since it was made; "" if nothing
// is sure. The template covers the CAs, so etcd has read the present ones, however often it has restarted.
// A new pod has no note: the Secret may have got others since the operator read it, and before etcd did.
// If somebody has exchanged them and put them back meanwhile, a member with the others would not be ready.
func knownCAs(pod *corev1.Pod, t Template) string {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == EtcdContainer })
	if i < 0 || t.PeerCAs == "" || pod.Annotations[PodTemplateAnnotation] != t.Pod || !hasCondition(pod, corev1.PodReady, corev1.ConditionTrue) {
		return ""
	}
	if n := pod.Status.ContainerStatuses[i].RestartCount; n > 0 {
		return t.PeerCAs + " " + strconv.Itoa(int(n))
	}
	return t.PeerCAs
}
