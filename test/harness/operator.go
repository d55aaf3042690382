// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	operatorUp = 90 * time.Second
	// operatorApp is what selects the operator's pods in example/deployment.yaml.
	operatorApp = "etcd-operator"
)

// DeployOperator deploys the operator from example/, with further flags, and
// waits until it leads and the CRD is established.
func (n *Namespace) DeployOperator(flags ...string) {
	n.t.Helper()
	n.grant()
	n.DeployOperatorUngranted(flags...)
}

// DeployOperatorUngranted is DeployOperator for a service account that was given
// its rights already.
func (n *Namespace) DeployOperatorUngranted(flags ...string) {
	n.t.Helper()
	objects, err := n.manifest("example/deployment.yaml", nil)
	if err != nil {
		n.t.Fatalf("example/deployment.yaml: %v", err)
	}
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			setFlags(deployment, flags)
		}
		if err := create(n.t.Context(), n.Kube, n.Name, object); err != nil {
			n.t.Fatalf("create what example/deployment.yaml holds: %v", err)
		}
	}
	n.WaitOperator()
	n.record.watchClusters()
}

// DeployBeside deploys a second operator in the namespace, under another name,
// with further flags, and waits until it is available.
func (n *Namespace) DeployBeside(suffix string, flags ...string) {
	n.t.Helper()
	objects, err := n.manifest("example/deployment.yaml", nil)
	if err != nil {
		n.t.Fatalf("example/deployment.yaml: %v", err)
	}
	name := operatorApp + suffix
	for _, object := range objects {
		deployment, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		deployment.Name = name
		labels := map[string]string{"name": name}
		deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels = labels, labels
		setFlags(deployment, flags)
		if err := create(n.t.Context(), n.Kube, n.Name, deployment); err != nil {
			n.t.Fatalf("create Deployment %s: %v", name, err)
		}
	}
	Wait(n.t, "operator "+name, operatorUp, func(ctx context.Context) error {
		deployment, err := n.Kube.AppsV1().Deployments(n.Name).Get(ctx, name, metav1.GetOptions{})
		if err == nil && deployment.Status.AvailableReplicas == 0 {
			err = errors.New("it is not available")
		}
		return err
	})
}

// grant binds the shipped ClusterRole, under names of its own, to the service
// account that the operator runs as.
func (n *Namespace) grant() {
	n.t.Helper()
	replace := map[string]string{"<ROLE_NAME>": n.Name, "<ROLE_BINDING_NAME>": n.Name, "<NAMESPACE>": n.Name}
	for _, path := range []string{"example/rbac/cluster-role-template.yaml", "example/rbac/cluster-role-binding-template.yaml"} {
		objects, err := n.manifest(path, replace)
		if err != nil {
			n.t.Fatalf("render %s: %v", path, err)
		}
		for _, object := range objects {
			if err := create(n.t.Context(), n.Kube, n.Name, object); err != nil {
				n.t.Fatalf("create what %s holds: %v", path, err)
			}
		}
		n.granted = append(n.granted, objects...)
	}
}

// WaitOperator waits until an operator is ready and the CRD is established.
func (n *Namespace) WaitOperator() {
	n.t.Helper()
	Wait(n.t, "operator ready", operatorUp, func(ctx context.Context) error {
		if n.Operator() == nil {
			return errors.New("no operator pod is ready")
		}
		crd, err := n.CRDs.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, v1beta2.EtcdClusterCRDName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the CRD is not established: %+v", crd.Status.Conditions)
	})
}

// Operator is a ready pod of the operator, or nil.
func (n *Namespace) Operator() *corev1.Pod {
	for _, pod := range n.Operators() {
		if Ready(pod) && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return nil
}

// Operators are all pods of the operator, by name.
func (n *Namespace) Operators() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range n.Pods() {
		if strings.HasPrefix(pod.Name, operatorApp+"-") {
			pods = append(pods, pod)
		}
	}
	return pods
}

// CrashOperator kills the operator's process with SIGKILL. The kubelet starts
// it again in the same pod.
func (n *Namespace) CrashOperator() {
	n.t.Helper()
	if err := n.TryCrashOperator(); err != nil {
		n.t.Fatalf("crash the operator: %v", err)
	}
}

// TryCrashOperator is CrashOperator for when the operator may be down already.
func (n *Namespace) TryCrashOperator() error {
	var errs []error
	for _, pod := range n.Operators() {
		err := killProcess(pod, "etcd-operator", syscall.SIGKILL)
		if err == nil {
			n.crashes.Add(1)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ReplaceOperator deletes the operator's pod without grace. Another one, under
// another name, has to wait for the lease.
func (n *Namespace) ReplaceOperator() {
	n.t.Helper()
	if err := n.TryReplaceOperator(); err != nil {
		n.t.Fatal(err)
	}
}

// TryReplaceOperator is ReplaceOperator for goroutines that can't end the test.
func (n *Namespace) TryReplaceOperator() error {
	var errs []error
	for _, pod := range n.Operators() {
		errs = append(errs, n.deletePod(pod))
	}
	return errors.Join(errs...)
}

// DeletePod deletes a pod without grace.
func (n *Namespace) DeletePod(pod *corev1.Pod) {
	n.t.Helper()
	if err := n.deletePod(pod); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Namespace) deletePod(pod *corev1.Pod) error {
	now := int64(0)
	err := n.Kube.CoreV1().Pods(pod.Namespace).Delete(n.t.Context(), pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// StopOperator scales the operator to nothing, and waits until it is gone.
func (n *Namespace) StopOperator() {
	n.t.Helper()
	n.ScaleOperator(0)
	Wait(n.t, "operator gone", operatorUp, func(context.Context) error {
		if pods := n.Operators(); len(pods) > 0 {
			return fmt.Errorf("%s is still there", pods[0].Name)
		}
		return nil
	})
}

// StartOperator scales the operator up again, and waits until it is ready.
func (n *Namespace) StartOperator() {
	n.t.Helper()
	n.ScaleOperator(1)
	n.WaitOperator()
}

// ScaleOperator changes the number of operators and doesn't wait.
func (n *Namespace) ScaleOperator(replicas int32) {
	n.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // its status is written as well
		scale, err := n.Kube.AppsV1().Deployments(n.Name).GetScale(n.t.Context(), operatorApp, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = n.Kube.AppsV1().Deployments(n.Name).UpdateScale(n.t.Context(), operatorApp, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		n.t.Fatalf("scale the operator to %d: %v", replicas, err)
	}
}

// FromOperator gets a page of the operator's HTTP server.
func (n *Namespace) FromOperator(ctx context.Context, path string) (status int, body string, err error) {
	pod := n.Operator()
	if pod == nil {
		return 0, "", errors.New("no operator pod is ready")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(pod.Status.PodIP, "8080")+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return response.StatusCode, string(text), err
}

// checkOperator fails the test when an operator did what none may do, whatever
// the test is about: panic, ask for what its shipped role doesn't grant, restart
// without being crashed.
func (n *Namespace) checkOperator() {
	n.t.Helper()
	for _, alarm := range n.record.alarms(operatorApp + "-") {
		n.t.Errorf("log of the operator: %s", alarm)
	}
	for _, pod := range n.Operators() {
		for _, status := range pod.Status.ContainerStatuses {
			if int64(status.RestartCount) > n.crashes.Load() {
				n.t.Errorf("operator %s restarted %d times, the test crashed it %d times", pod.Name, status.RestartCount, n.crashes.Load())
			}
		}
	}
}
