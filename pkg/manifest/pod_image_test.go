// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestImagesAreWrittenAsTheVersionSays(t *testing.T) {
	for _, c := range []struct {
		spec, version string
		literal       bool
		want          string
	}{
		{"3.5.9", "3.5.9", false, "r:v3.5.9"},
		{"v3.5.9", "3.5.9", false, "r:v3.5.9"},
		{"3.5.9", "3.5.9", true, "r:3.5.9"},
		{"v3.5.9", "3.5.9", true, "r:v3.5.9"},
		{"v3.5.9-arm64", "3.5.9-arm64", true, "r:v3.5.9-arm64"},
		{"3.5.9-0", "3.5.9-0", true, "r:3.5.9-0"},
		{"v3.5.9@sha256:a", "3.5.9", false, "r:v3.5.9@sha256:a"},
		{"3.5.9@sha256:a", "3.5.9", true, "r:3.5.9@sha256:a"},
		{"3.5.9@sha256:a", "3.5.8", false, "r:v3.5.8"}, // another version has another digest
	} {
		spec := &api.ClusterSpec{Repository: "r", Version: c.spec}
		if got := Image(spec, c.version, c.literal); got != c.want {
			t.Errorf("%s of spec.version %s, literal %t: %s, want %s", c.version, c.spec, c.literal, got, c.want)
		}
	}
}

func TestATagWithoutAVIsSeen(t *testing.T) {
	for image, want := range map[string]bool{
		"r/etcd:3.5.9": true, "r/etcd:3.5.9-0": true, "r/etcd:3.5.9@sha256:a": true, "r:5000/etcd:3.5.9": true,
		"r/etcd:v3.5.9": false, "r/etcd:v3.5.9-arm64": false, "r/etcd:latest": false, "r/etcd@sha256:a": false, "r/etcd": false,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: EtcdContainer, Image: image}}}}
		if got := PodStateOf(pod).LiteralTag; got != want {
			t.Errorf("%s: %t", image, got)
		}
	}
}

func TestAnImageHoldsWhatItsTagSays(t *testing.T) {
	for _, c := range []struct {
		tag, reported string
		want          bool
	}{
		{"3.5.9", "3.5.9", true}, {"v3.5.9", "3.5.9", true}, {"3.5.9-arm64", "3.5.9", true}, {"3.5.9-0", "3.5.9", true},
		{"3.6.0-rc.1", "3.6.0-rc.1", true}, {"3.6.0", "3.6.0-rc.1", false}, {"3.6.0-rc.2", "3.6.0-rc.1", false},
		{"3.5.9", "3.5.8", false}, {"3.5.9-arm64", "3.5.8", false}, {"latest", "3.5.9", false}, {"3.5.9", "", false},
	} {
		if got := Holds(c.tag, c.reported); got != c.want {
			t.Errorf("%s holds %s: %t", c.tag, c.reported, got)
		}
	}
}
