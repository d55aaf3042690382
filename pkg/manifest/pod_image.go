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

// RememberImage notes on a new pod the image that the operator asks for. Admission may pin it
// to a digest or move it to another registry, and the pod then does not show the original.
func RememberImage(pod *corev1.Pod) {
	if i := slices.IndexFunc(pod.Spec.Containers, isEtcd); i >= 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, ImageAnnotation, pod.Spec.Containers[i].Image)
	}
}

// recordsImage reports whether a pod states which image the operator asked for. A pod from v0.9.4
// does so after its adoption: for as long as nobody edits the spec, that is the spec's image,
// although admission or an edit before the adoption may have given it another one.
func recordsImage(pod *corev1.Pod) bool {
	asked := pod.Annotations[ImageAnnotation]
	return asked != "" && SameVersion(VersionOf(asked, ""), pod.Annotations[VersionAnnotation])
}

// imageAskedFor returns the image that the operator asked for in a pod with the image
// admitted, and the version in its tag. Earlier operators noted only the version. If it
// differs, somebody has changed the image since.
func imageAskedFor(pod *corev1.Pod, admitted string) (image, version string) {
	asked, version := pod.Annotations[ImageAnnotation], pod.Annotations[VersionAnnotation]
	if recordsImage(pod) {
		return asked, VersionOf(asked, "")
	}
	// The operator never asks for a digest behind a tag.
	image, _, _ = strings.Cut(admitted, "@")
	return image, VersionOf(admitted, version)
}

// Holds reports whether an image with this version in its tag holds the etcd that reports the
// other one. The tag may have a suffix, such as -arm64. A pre-release reports its own.
func Holds(tag, reported string) bool {
	if SameVersion(tag, reported) {
		return true
	}
	t, errt := etcd.ParseVersion(tag)
	r, errr := etcd.ParseVersion(reported)
	return errt == nil && errr == nil && len(r.Pre) == 0 && t.FinalizeVersion() == r.FinalizeVersion()
}

// Replaced is the ReplacedAnnotation of a pod whose image is about to change; "" while the kubelet
// has not named its container.
func Replaced(pod *corev1.Pod) string {
	p := PodStateOf(pod)
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == EtcdContainer && s.ContainerID != "" {
			return s.ContainerID + " " + p.Admitted
		}
	}
	return ""
}

// SameVersion reports whether two texts name the same version of etcd.
func SameVersion(a, b string) bool {
	va, erra := etcd.ParseVersion(a)
	vb, errb := etcd.ParseVersion(b)
	return erra == nil && errb == nil && va.EQ(vb.Version)
}
