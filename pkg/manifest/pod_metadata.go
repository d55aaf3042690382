// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Annotations on a pod that list the keys of labels and annotations from the spec, separated
// by commas. The operator removes what the spec no longer has, and keeps what others have
// added.
const (
	specLabelsAnnotation      = api.OperatorAnnotations + "spec-labels"
	specAnnotationsAnnotation = api.OperatorAnnotations + "spec-annotations"
)

// specMetadata returns the spec's labels and annotations for a pod. Admission refuses reserved
// keys; specMetadata ignores them in objects from before that rule.
func specMetadata(obj *api.EtcdCluster) (labels, annotations map[string]string) {
	if obj.Spec.Pod == nil {
		return nil, nil
	}
	labels, annotations = maps.Clone(obj.Spec.Pod.Labels), maps.Clone(obj.Spec.Pod.Annotations)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == api.AppLabel || key == api.ClusterLabel || key == api.NodeLabel
	})
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == VersionAnnotation || strings.HasPrefix(key, api.OperatorAnnotations)
	})
	return labels, annotations
}

// RememberMetadata notes on a new pod which of its labels and annotations come from the spec.
func RememberMetadata(obj *api.EtcdCluster, pod *corev1.Pod) {
	labels, annotations := specMetadata(obj)
	for annotation, keys := range map[string]string{specLabelsAnnotation: keysOf(labels), specAnnotationsAnnotation: keysOf(annotations)} {
		if keys != "" {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotation, keys)
		}
	}
}

func keysOf(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}

// MetadataOutdated reports whether MetadataPatch has something to change.
func MetadataOutdated(obj *api.EtcdCluster, pod *corev1.Pod, t Template) bool {
	labels, annotations := metadataChanges(obj, pod, t)
	return len(labels)+len(annotations) > 0
}

// MetadataPatch returns the merge patch that updates labels and annotations. For a pod from
// before the records of template and image, it assumes the current spec.
func MetadataPatch(obj *api.EtcdCluster, pod *corev1.Pod, t Template, uid types.UID) ([]byte, error) {
	labels, annotations := metadataChanges(obj, pod, t)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "labels": labels, "annotations": annotations},
	})
	if err != nil {
		return nil, fmt.Errorf("patch of pod %s: %w", pod.Name, err)
	}
	return patch, nil
}

// metadataChanges returns the labels and annotations to set; nil: to remove.
func metadataChanges(obj *api.EtcdCluster, pod *corev1.Pod, t Template) (labels, annotations map[string]any) {
	wantLabels, wantAnnotations := specMetadata(obj)
	labels = changes(wantLabels, pod.Labels, pod.Annotations[specLabelsAnnotation])
	annotations = changes(wantAnnotations, pod.Annotations, pod.Annotations[specAnnotationsAnnotation])
	for annotation, keys := range map[string]string{specLabelsAnnotation: keysOf(wantLabels), specAnnotationsAnnotation: keysOf(wantAnnotations)} {
		switch has := pod.Annotations[annotation]; {
		case has == keys:
		case keys == "":
			annotations[annotation] = nil
		default:
			annotations[annotation] = keys
		}
	}
	if pod.Annotations[PodTemplateAnnotation] == "" && t.Pod != "" {
		annotations[PodTemplateAnnotation] = t.Pod
	}
	if note := knownCAs(pod, t); note != "" && pod.Annotations[PeerCAsAnnotation] != note {
		annotations[PeerCAsAnnotation] = note
	}
	if isLegacy(pod) && !recordsImage(pod) {
		if p := PodStateOf(pod); SameVersion(p.Version, pod.Annotations[VersionAnnotation]) {
			annotations[ImageAnnotation] = Image(&obj.Spec, p.Version, p.LiteralTag)
		}
	}
	return labels, annotations
}

func changes(want, has map[string]string, before string) map[string]any {
	out := map[string]any{}
	for key, value := range want {
		if old, ok := has[key]; !ok || old != value {
			out[key] = value
		}
	}
	for key := range strings.SplitSeq(cmp.Or(before, " "), ",") {
		if _, ok := has[key]; !ok {
			continue
		}
		if _, ok := want[key]; !ok {
			out[key] = nil
		}
	}
	return out
}
