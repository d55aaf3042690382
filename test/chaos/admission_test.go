//go:build chaos

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// What Kubernetes makes of a pod that the operator asks for. A pod is deleted, so that
// the operator asks for one.
var admissionFaults = []fault{
	{name: "admission pins images", calm: true, fits: outlivesAPod, strike: func(s *storm, c *target, member *corev1.Pod) {
		digests := s.n.Digests()
		release := s.n.AdmitImages(func(image string) (string, error) {
			if digest := digests[image]; digest != "" {
				return image + "@" + digest, nil
			}
			return image, nil
		})
		s.n.DeletePod(member)
		s.hold(1, 10)
		s.upgrade(c)
		s.awaitCalm() // the operator has what it asked for
		release()
	}},
	{name: "admission refuses pods", calm: true, fits: outlivesAPod, strike: func(s *storm, _ *target, member *corev1.Pod) {
		release := s.n.AdmitImages(func(string) (string, error) { return "", errors.New("no pods now") })
		s.n.DeletePod(member)
		s.hold(10, 60)
		release()
	}},
	{name: "pod quota full", calm: true, fits: outlivesAPod, strike: func(s *storm, _ *target, member *corev1.Pod) {
		release := s.usePods()
		s.n.DeletePod(member)
		s.hold(10, 60)
		release()
	}},
}

// usePods leaves the namespace no pods beyond those that it has.
func (s *storm) usePods() (release func()) {
	s.t.Helper()
	quotas := s.n.Kube.CoreV1().ResourceQuotas(s.n.Name)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}
	if _, err := quotas.Create(s.t.Context(), quota, metav1.CreateOptions{}); err != nil {
		s.t.Fatalf("use up the quota: %v", err)
	}
	harness.Wait(s.t, "quota in force", time.Minute, func(ctx context.Context) error {
		live, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err == nil && len(live.Status.Used) == 0 {
			err = errors.New("nothing is counted")
		}
		return err
	})
	return func() {
		if err := quotas.Delete(s.t.Context(), quota.Name, metav1.DeleteOptions{}); err != nil {
			s.t.Fatalf("free the quota: %v", err)
		}
	}
}
