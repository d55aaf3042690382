// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/etcd/etcdtest"
)

// AdmitImages asks a function for the image of each container of the namespace's pods of
// etcd that are created or edited, until it is released. An error refuses the pod.
func (n *Namespace) AdmitImages(decide func(image string) (string, error)) (release func()) {
	n.t.Helper()
	ip := n.HostIP(n.t)
	listener, err := (&net.ListenConfig{}).Listen(n.t.Context(), "tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		n.t.Fatalf("serve admission: %v", err)
	}
	ca := etcdtest.NewCA(n.t, "admission")
	cert, err := tls.X509KeyPair(ca.Issue(etcdtest.Leaf{Name: "admission", IPs: []net.IP{net.ParseIP(ip)}}))
	if err != nil {
		n.t.Fatalf("serve admission: %v", err)
	}
	server := &httptest.Server{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { review(w, r, decide) }), ReadHeaderTimeout: time.Minute}}
	server.StartTLS()
	n.t.Cleanup(server.Close)

	url, fail, none := "https://"+listener.Addr().String(), admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	webhooks := n.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	made, err := webhooks.Create(n.t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: n.Name + "-"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "images.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca.PEM},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.Name}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": "etcd"}},
			AdmissionReviewVersions: []string{"v1"}, FailurePolicy: &fail, SideEffects: &none,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatalf("register admission: %v", err)
	}
	release = sync.OnceFunc(func() {
		n.t.Helper()
		ctx, cancel := later(n.t.Context(), 30*time.Second)
		defer cancel()
		if err := webhooks.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil {
			n.t.Errorf("unregister admission: %v", err)
		}
	})
	n.t.Cleanup(release) // before the server is closed
	return release
}

// review answers for one pod.
func review(w http.ResponseWriter, r *http.Request, decide func(string) (string, error)) {
	var asked admissionv1.AdmissionReview
	var pod corev1.Pod
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err == nil && asked.Request == nil {
		err = fmt.Errorf("nothing is asked")
	}
	if err == nil {
		err = json.Unmarshal(asked.Request.Object.Raw, &pod)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := &admissionv1.AdmissionResponse{UID: asked.Request.UID, Allowed: true}
	patch, err := patchImages(&pod, decide)
	if err != nil {
		answer.Allowed, answer.Result = false, &metav1.Status{Message: err.Error(), Code: http.StatusForbidden}
	} else if len(patch) > 0 {
		kind := admissionv1.PatchTypeJSONPatch
		answer.Patch, answer.PatchType = patch, &kind
	}
	asked.Request, asked.Response = nil, answer
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(asked) // the API server is gone if this fails
}

// patchImages is a JSON patch with the images that are decided upon; nil if none changes.
func patchImages(pod *corev1.Pod, decide func(string) (string, error)) ([]byte, error) {
	type replace struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	var patch []replace
	for list, containers := range map[string][]corev1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i, container := range containers {
			image, err := decide(container.Image)
			if err != nil {
				return nil, err
			}
			if image != container.Image {
				patch = append(patch, replace{"replace", fmt.Sprintf("/spec/%s/%d/image", list, i), image})
			}
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return json.Marshal(patch)
}

// Digests are those of the images that the nodes have, by the names with tags.
func (n *Namespace) Digests() map[string]string {
	n.t.Helper()
	out, err := n.hackKube(n.t.Context(), "digests")
	if err != nil {
		n.t.Fatal(err)
	}
	digests := map[string]string{}
	for line := range strings.Lines(out) {
		if name, digest, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			digests[name] = digest
		}
	}
	return digests
}
