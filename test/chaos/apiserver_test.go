//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const apiServerUnreached = "operator cut off from the API server"

var apiServerFaults = []fault{
	{name: "API server hangs", strike: func(s *storm, _ *target, _ *corev1.Pod) {
		release := s.n.HangAPIServer()
		s.hold(5, 60)
		release()
	}},
	{name: "API server killed", strike: func(s *storm, _ *target, _ *corev1.Pod) { s.n.KillAPIServer() }},
	{name: apiServerUnreached, strike: func(s *storm, _ *target, _ *corev1.Pod) {
		service, err := s.n.Kube.CoreV1().Services(metav1.NamespaceDefault).Get(s.t.Context(), "kubernetes", metav1.GetOptions{})
		if err != nil {
			s.t.Errorf("find the API server: %v", err)
			return
		}
		s.hinderOperator(apiServerUnreached, "ip daddr "+service.Spec.ClusterIP+" drop")
	}},
}
