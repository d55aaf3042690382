// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/operators"
)

// operators looks for an instance of each operator that leads, and at its pod.
func (d *Doctor) operators(ctx context.Context) {
	for i, program := range operators.Programs {
		level := Warning // only who backs up needs those
		if i == 0 {
			level = Failure
		}
		found, err := operators.Find(ctx, d.Access, program)
		if err != nil {
			d.unknown(program, err)
			continue
		}
		if len(found) == 0 {
			d.add(program, level, "deploy it (README.md)", "no instance has ever led: there is no Lease for the namespace %s", d.Access.Namespace)
		}
		// The Lease of an operator that someone has removed stays.
		if slices.ContainsFunc(found, func(o operators.Operator) bool { return o.Alive(d.Now()) }) {
			level = Warning
		}
		for _, o := range found {
			d.operator(ctx, o, level)
		}
	}
}

func (d *Doctor) operator(ctx context.Context, o operators.Operator, level Level) {
	scope := "for its own namespace"
	if o.ClusterWide {
		scope = "for all namespaces, for objects with the annotation of cluster-wide operators"
	}
	if !o.Alive(d.Now()) {
		d.add(o.Program, level, "look at its pods: "+hint.Kubectl(hint.Place{Namespace: o.Namespace, Chosen: d.Access.Chosen}, "get", "pods"),
			"no instance leads (%s): pod %s has renewed the Lease %s ago", scope, cmp.Or(o.Pod, "-"), d.Now().Sub(o.Renewed).Round(time.Second))
		return
	}
	pod, err := d.Access.Kube.CoreV1().Pods(o.Namespace).Get(ctx, o.Pod, metav1.GetOptions{})
	if err != nil {
		// It may run outside of Kubernetes.
		d.add(o.Program, OK, "", "%s/%s leads %s; its pod can't be read (%v)", o.Namespace, o.Pod, scope, err)
		return
	}
	d.add(o.Program, OK, "", "pod %s/%s leads %s, image %s", o.Namespace, o.Pod, scope, image(pod))
	d.rightsOf(ctx, o.Program, cmp.Or(pod.Spec.ServiceAccountName, "default"), o.Namespace)
}

func image(pod *corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return "-"
	}
	return pod.Spec.Containers[0].Image
}
