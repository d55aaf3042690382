//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// Two admission policies do in one namespace what OpenShift does in all. The operator and the
// members of a cluster run as users that the namespace reserves.
func TestOnOpenShift(t *testing.T) {
	t.Parallel()
	n := harness.NewNamespace(t)
	ranges := []byte(`{"metadata":{"annotations":{"openshift.io/sa.scc.uid-range":"1000650000/10000","openshift.io/sa.scc.supplemental-groups":"1000660000/10000"}}}`)
	if _, err := n.Kube.CoreV1().Namespaces().Patch(t.Context(), n.Name, types.MergePatchType, ranges, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		admission, none := n.Kube.AdmissionregistrationV1(), metav1.DeleteOptions{}
		for what, err := range map[string]error{
			"MutatingAdmissionPolicyBinding":   admission.MutatingAdmissionPolicyBindings().Delete(ctx, n.Name, none),
			"MutatingAdmissionPolicy":          admission.MutatingAdmissionPolicies().Delete(ctx, n.Name, none),
			"ValidatingAdmissionPolicyBinding": admission.ValidatingAdmissionPolicyBindings().Delete(ctx, n.Name, none),
			"ValidatingAdmissionPolicy":        admission.ValidatingAdmissionPolicies().Delete(ctx, n.Name, none),
			"CustomResourceDefinition":         n.CRDs.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, "securitycontextconstraints.security.openshift.io", none),
		} {
			if err != nil {
				t.Errorf("delete the %s: %v", what, err)
			}
		}
	})
	n.Shell("sed s/NAMESPACE/$NAMESPACE/ test/e2e/testdata/openshift.yaml | kubectl apply -f -")
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "refused"}, Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(65532))},
		Containers:      []corev1.Container{{Name: "c", Image: "c"}},
	}}
	harness.Wait(t, "an OpenShift that refuses a foreign user", harness.Settle, func(ctx context.Context) error {
		if err := n.Kube.Discovery().RESTClient().Get().AbsPath("/apis/security.openshift.io").Do(ctx).Error(); err != nil {
			return err
		}
		_, err := n.Kube.CoreV1().Pods(n.Name).Create(ctx, foreign, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("the namespace takes one")
		case !strings.Contains(err.Error(), "runAsUser: Invalid value"):
			return err
		}
		return nil
	})
	n.DeployOperator()
	cluster := n.CreateObject(onVolumes(3, etcd36))
	cluster.WaitSettled()
	cluster.Put("greeting", "hello")
	for _, pod := range cluster.Pods() {
		process := processOf(t, pod)
		if got := process.status("Uid"); !strings.HasPrefix(got, "1000650000\t") {
			t.Errorf("%s runs as user %s", pod.Name, got)
		}
		if got := process.status("Groups"); !strings.Contains(got, "1000660000") {
			t.Errorf("%s has the groups %s", pod.Name, got)
		}
	}
}
