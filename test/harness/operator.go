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
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/etcd-operator/etcd-operator/internal/leader"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const (
	operatorUp = Settle
	// operatorApp selects the operator's pods in example/deployment.yaml.
	operatorApp = "etcd-operator"
)

// DeployOperator deploys the operator from example/ with additional flags, and waits until it
// leads and the CRD is established.
func (n *Namespace) DeployOperator(flags ...string) {
	n.t.Helper()
	n.grant()
	n.DeployOperatorUngranted(flags...)
}

// DeployOperatorUngranted is DeployOperator for a service account that has its rights already.
func (n *Namespace) DeployOperatorUngranted(flags ...string) {
	n.t.Helper()
	n.deploy("example/deployment.yaml", func(d *appsv1.Deployment) { setFlags(d, flags) })
	n.WaitOperator()
	n.record.watchClusters()
}

// deploy creates a Deployment and its other objects from a manifest, after edit.
func (n *Namespace) deploy(path string, edit func(*appsv1.Deployment)) {
	n.t.Helper()
	objects, err := n.manifest(path, nil)
	if err != nil {
		n.t.Fatalf("%s: %v", path, err)
	}
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			edit(deployment)
		}
		if err := create(n.t.Context(), n.Kube, n.Name, object); err != nil {
			n.t.Fatalf("create what %s holds: %v", path, err)
		}
	}
}

// DeployBeside deploys a second operator in the namespace under another name, with additional
// flags, and waits until it is available.
func (n *Namespace) DeployBeside(suffix string, flags ...string) {
	n.t.Helper()
	name := operatorApp + suffix
	n.deploy("example/deployment.yaml", func(d *appsv1.Deployment) {
		d.Name = name
		labels := map[string]string{"name": name}
		d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
		setFlags(d, flags)
	})
	Wait(n.t, "operator "+name, operatorUp, func(ctx context.Context) error {
		deployment, err := n.Kube.AppsV1().Deployments(n.Name).Get(ctx, name, metav1.GetOptions{})
		if err == nil && deployment.Status.AvailableReplicas == 0 {
			err = errors.New("it is not available")
		}
		return err
	})
}

// grant binds the shipped ClusterRole, under names of its own, to the operator's service
// account.
func (n *Namespace) grant() {
	n.t.Helper()
	if len(n.granted) > 0 {
		return
	}
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
	n.waitProgram(operatorApp, v1beta2.EtcdClusterCRDName)
}

// waitProgram waits until one of our programs is ready and its CRD is established.
func (n *Namespace) waitProgram(app, crdName string) {
	n.t.Helper()
	Wait(n.t, app+" ready", operatorUp, func(ctx context.Context) error {
		if ready(n.podsOf(app)) == nil {
			return errors.New("no pod of it is ready")
		}
		crd, err := n.CRDs.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crdName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the CRD %s is not established: %+v", crdName, crd.Status.Conditions)
	})
}

// podsOf returns all pods of one of our programs, by name.
func (n *Namespace) podsOf(app string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range n.Pods() {
		if strings.HasPrefix(pod.Name, app+"-") {
			pods = append(pods, pod)
		}
	}
	return pods
}

func ready(pods []*corev1.Pod) *corev1.Pod {
	for _, pod := range pods {
		if Ready(pod) && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return nil
}

// Operator returns a ready pod of the operator, or nil.
func (n *Namespace) Operator() *corev1.Pod { return ready(n.Operators()) }

// AwaitOperator returns a ready pod of the operator. On a busy machine, it may not be ready all the time.
func (n *Namespace) AwaitOperator() *corev1.Pod {
	n.t.Helper()
	return n.await(operatorApp)
}

// await returns a ready pod of one of our programs.
func (n *Namespace) await(app string) (pod *corev1.Pod) {
	n.t.Helper()
	Wait(n.t, app+" ready", operatorUp, func(context.Context) error {
		if pod = ready(n.podsOf(app)); pod == nil {
			return errors.New("no pod of it is ready")
		}
		return nil
	})
	return pod
}

// Operators returns all pods of the operator, by name.
func (n *Namespace) Operators() []*corev1.Pod { return n.podsOf(operatorApp) }

// ReplaceOperator deletes the operator's pod without grace. Its replacement, under another
// name, must wait for the Lease.
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
	n.stop(operatorApp)
}

// stop scales one of our programs to nothing, and waits until it is gone.
func (n *Namespace) stop(app string) {
	n.t.Helper()
	n.scale(app, 0)
	Wait(n.t, app+" gone", operatorUp, func(context.Context) error {
		if pods := n.podsOf(app); len(pods) > 0 {
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

// ScaleOperator changes the number of operators and does not wait.
func (n *Namespace) ScaleOperator(replicas int32) {
	n.t.Helper()
	n.scale(operatorApp, replicas)
}

func (n *Namespace) scale(app string, replicas int32) {
	n.t.Helper()
	err := retry.RetryOnConflict(conflictPatience, func() error { // the Deployment's status changes meanwhile
		scale, err := n.Kube.AppsV1().Deployments(n.Name).GetScale(n.t.Context(), app, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = replicas
		_, err = n.Kube.AppsV1().Deployments(n.Name).UpdateScale(n.t.Context(), app, scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		n.t.Fatalf("scale %s to %d: %v", app, replicas, err)
	}
}

// FromOperator gets a page of the operator's HTTP server.
func (n *Namespace) FromOperator(ctx context.Context, path string) (status int, body string, err error) {
	return fromProgram(ctx, n.Operator(), path)
}

func fromProgram(ctx context.Context, pod *corev1.Pod, path string) (status int, body string, err error) {
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

// crashesOf returns the number of the operators' crashes by the test, by name.
func (n *Namespace) crashesOf() map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{operatorApp: &n.crashes, backupApp: &n.backupCrashes, restoreApp: &n.restoreCrashes}
}

// checkOperator fails the test if an operator did what none may do in any test: panic, send a
// request that its shipped role does not allow, or restart without a crash by the test.
func (n *Namespace) checkOperator() {
	n.t.Helper()
	for app, crashes := range n.crashesOf() {
		for _, alarm := range n.record.alarms(app + "-") {
			n.t.Errorf("log of the operator: %s", alarm)
		}
		for _, pod := range n.podsOf(app) {
			for _, status := range pod.Status.ContainerStatuses {
				// An operator that can't renew its Lease in time must end: for ten seconds
				// neither it nor the API server made progress.
				lost := n.record.starts(pod.Name, leader.ErrLost.Error())
				if int64(status.RestartCount) > crashes.Load()+lost {
					n.t.Errorf("operator %s restarted %d times, the test crashed it %d times, and it lost its Lease %d times", pod.Name, status.RestartCount, crashes.Load(), lost)
				}
			}
		}
	}
}
