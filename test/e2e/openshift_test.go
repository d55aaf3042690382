//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// Three admission policies do in one namespace what OpenShift does in all. The operators and the
// members of a cluster run as users that the namespace reserves. The operators write EndpointSlices.
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
			"MutatingAdmissionPolicyBinding":             admission.MutatingAdmissionPolicyBindings().Delete(ctx, n.Name, none),
			"MutatingAdmissionPolicy":                    admission.MutatingAdmissionPolicies().Delete(ctx, n.Name, none),
			"ValidatingAdmissionPolicyBinding":           admission.ValidatingAdmissionPolicyBindings().Delete(ctx, n.Name, none),
			"ValidatingAdmissionPolicy":                  admission.ValidatingAdmissionPolicies().Delete(ctx, n.Name, none),
			"ValidatingAdmissionPolicyBinding of slices": admission.ValidatingAdmissionPolicyBindings().Delete(ctx, n.Name+"-slices", none),
			"ValidatingAdmissionPolicy of slices":        admission.ValidatingAdmissionPolicies().Delete(ctx, n.Name+"-slices", none),
			"CustomResourceDefinition":                   n.CRDs.ApiextensionsV1().CustomResourceDefinitions().Delete(ctx, "securitycontextconstraints.security.openshift.io", none),
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
	awaitRefusedSlice(t, n)
	n.DeployOperator()
	n.DeployRestoreOperator(nil)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "former"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "client", Port: 2379}}},
	}
	if _, err := n.Kube.CoreV1().Services(n.Name).Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bridged := onVolumes(3, etcd36)
	bridged.Spec.Service = &v1beta2.ServicePolicy{Bridges: []v1beta2.ServiceBridge{{Name: service.Name}}}
	cluster := n.CreateObject(bridged)
	cluster.WaitSettled()
	harness.Wait(t, "EndpointSlices of both operators", harness.Settle, func(ctx context.Context) error {
		for _, name := range []string{service.Name, "etcd-restore-operator"} {
			list, err := n.Kube.DiscoveryV1().EndpointSlices(n.Name).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
			if err != nil {
				return err
			}
			if len(list.Items) == 0 {
				return fmt.Errorf("the Service %s has none", name)
			}
		}
		return nil
	})
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

// awaitRefusedSlice waits until nobody can write addresses of pods who may create EndpointSlices
// alone.
func awaitRefusedSlice(t *testing.T, n *harness.Namespace) {
	t.Helper()
	n.Shell("kubectl create role writer --verb=create --resource=endpointslices.discovery.k8s.io")
	n.Shell("kubectl create rolebinding writer --role=writer --serviceaccount=$NAMESPACE:writer")
	config := rest.CopyConfig(n.REST)
	config.Impersonate.UserName = "system:serviceaccount:" + n.Name + ":writer"
	writer, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "refused"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	harness.Wait(t, "an OpenShift that refuses an EndpointSlice", harness.Settle, func(ctx context.Context) error {
		_, err := writer.DiscoveryV1().EndpointSlices(n.Name).Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return errors.New("the namespace takes one")
		case !strings.Contains(err.Error(), "endpoint address is not allowed"):
			return err
		}
		return nil
	})
}
