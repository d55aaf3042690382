// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// RememberImage notes on a new pod the image that the operator asks for. Admission may
// pin it to a digest or move it to another registry, and then the pod does not say.
func RememberImage(pod *corev1.Pod) {
	if i := slices.IndexFunc(pod.Spec.Containers, isEtcd); i >= 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, ImageAnnotation, pod.Spec.Containers[i].Image)
	}
}

// imageAskedFor is the image that the operator asked for in a pod that has the image
// admitted, and the version of etcd by its tag. An operator of before notes the version
// alone: where that is another one, the image was changed since it was noted.
func imageAskedFor(pod *corev1.Pod, admitted string) (image, version string) {
	asked, version := pod.Annotations[ImageAnnotation], pod.Annotations[VersionAnnotation]
	if asked != "" && SameVersion(VersionOf(asked, ""), version) {
		return asked, VersionOf(asked, "")
	}
	// A digest behind a tag is not of the operator's asking.
	image, _, _ = strings.Cut(admitted, "@")
	return image, VersionOf(admitted, version)
}

// SameVersion reports whether two texts name the same version of etcd.
func SameVersion(a, b string) bool {
	va, erra := etcd.ParseVersion(a)
	vb, errb := etcd.ParseVersion(b)
	return erra == nil && errb == nil && va.EQ(vb.Version)
}
