// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rememberImage notes on a new pod the image that the operator asks for. Admission may
// pin it to a digest or move it to another registry, and then the pod does not say.
func rememberImage(pod *corev1.Pod) {
	if i := slices.IndexFunc(pod.Spec.Containers, isEtcd); i >= 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, imageAnnotation, pod.Spec.Containers[i].Image)
	}
}

// imageAskedFor is the image that the operator asked for in a pod that has the image
// admitted, and the version of etcd by its tag. An operator of before notes the version
// alone: where that is another one, the image was changed since it was noted.
func imageAskedFor(pod *corev1.Pod, admitted string) (image, version string) {
	asked, version := pod.Annotations[imageAnnotation], pod.Annotations[versionAnnotation]
	if asked != "" && sameVersion(versionOf(asked, ""), version) {
		return asked, versionOf(asked, "")
	}
	// A digest behind a tag is not of the operator's asking.
	image, _, _ = strings.Cut(admitted, "@")
	return image, versionOf(admitted, version)
}
