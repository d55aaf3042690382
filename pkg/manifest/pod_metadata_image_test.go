// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Pods of v0.9.4 do not state which image was asked for. An edit of spec.repository after the
// adoption was not seen.
func TestTheImageOfAnAdoptedPodIsRecordedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		policy         corev1.RestartPolicy
		image, version string
		want           string
	}{
		"as in the spec":         {corev1.RestartPolicyNever, "mirror/etcd:v3.5.9", "3.5.9", "mirror/etcd:v3.5.9"},
		"moved by admission":     {corev1.RestartPolicyNever, "cache/mirror/etcd:v3.5.9@sha256:12", "3.5.9", "mirror/etcd:v3.5.9"},
		"a tag without a v":      {corev1.RestartPolicyNever, "mirror/etcd:3.5.9", "3.5.9", "mirror/etcd:3.5.9"},
		"edited by hand":         {corev1.RestartPolicyNever, "mirror/etcd:v3.5.10", "3.5.9", ""},
		"of today, from a fork":  {corev1.RestartPolicyAlways, "mirror/etcd:v3.5.9", "3.5.9", ""},
		"a version of the owner": {corev1.RestartPolicyNever, "mirror/etcd:latest", "latest", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &api.EtcdCluster{Spec: api.ClusterSpec{Size: 3, Repository: "mirror/etcd", Version: "3.5.10"}}
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{VersionAnnotation: c.version, PodTemplateAnnotation: "t"}},
				Spec:       corev1.PodSpec{RestartPolicy: c.policy, Containers: []corev1.Container{{Name: EtcdContainer, Image: c.image}}},
			}
			patch, err := MetadataPatch(obj, pod, Template{Pod: "t"}, "1")
			if err != nil {
				t.Fatal(err)
			}
			var changed struct {
				Metadata struct{ Annotations map[string]string }
			}
			if err := json.Unmarshal(patch, &changed); err != nil {
				t.Fatal(err)
			}
			if got := changed.Metadata.Annotations[ImageAnnotation]; got != c.want {
				t.Fatalf("records %q, want %q", got, c.want)
			}
			if MetadataOutdated(obj, pod, Template{Pod: "t"}) != (c.want != "") {
				t.Error("the plan does not ask for the record, or asks without need")
			}
			if c.want == "" {
				return
			}
			pod.Annotations[ImageAnnotation] = c.want
			obj.Spec.Repository = "elsewhere/etcd"
			if MetadataOutdated(obj, pod, Template{Pod: "t"}) {
				t.Error("an edit of the repository changes the record")
			}
			if p := PodStateOf(pod); !p.ImageOnRecord || p.Image != c.want || p.Admitted != c.image {
				t.Errorf("read as %+v", p)
			}
		})
	}
}
