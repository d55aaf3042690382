// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAdmissionRewritesAndRefusesImages(t *testing.T) {
	pod, err := json.Marshal(&corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Image: "init:v1"}},
		Containers:     []corev1.Container{{Image: "etcd:v1"}, {Image: "other:v1"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(decide func(string) (string, error)) *admissionv1.AdmissionResponse {
		t.Helper()
		body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "7", Object: runtime.RawExtension{Raw: pod}}})
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		review(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body)), decide)
		var got admissionv1.AdmissionReview
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil || got.Response == nil || got.Response.UID != "7" {
			t.Fatalf("answer %+v, %v", got, err)
		}
		return got.Response
	}

	got := ask(func(image string) (string, error) {
		return strings.Replace(image, "etcd:v1", "etcd:v1@sha256:a", 1), nil
	})
	if want := `[{"op":"replace","path":"/spec/containers/0/image","value":"etcd:v1@sha256:a"}]`; !got.Allowed || string(got.Patch) != want {
		t.Errorf("a pod is allowed: %t, with the patch %s, want %s", got.Allowed, got.Patch, want)
	}
	if got := ask(func(image string) (string, error) { return image, nil }); !got.Allowed || got.Patch != nil {
		t.Errorf("a pod that stays as it is: %+v", got)
	}
	if got := ask(func(string) (string, error) { return "", errors.New("not now") }); got.Allowed || got.Result.Message != "not now" {
		t.Errorf("a pod that is refused: %+v", got)
	}
}
