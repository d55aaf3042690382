// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	"github.com/etcd-operator/etcd-operator/internal/plugin/observe"
	"github.com/etcd-operator/etcd-operator/internal/plugin/operators"
	"github.com/etcd-operator/etcd-operator/internal/plugin/summary"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Cluster examines one cluster as it was observed.
func (d *Doctor) Cluster(ctx context.Context, c *observe.Cluster) {
	s := summary.Of(c, nil)
	d.manager(ctx, c)
	d.quorum(s)
	d.services(ctx, c)
	d.budget(ctx, c)
	d.volumes(ctx, c)
	d.quota(s)
	d.certificates(s)
	for _, advice := range s.Advice {
		d.add("advice", Warning, "", "%s", advice)
	}
}

// manager looks for the operator that manages the cluster. One of a namespace leaves the objects with the
// annotation alone, and one of all namespaces those without it.
func (d *Doctor) manager(ctx context.Context, c *observe.Cluster) {
	const check = "manager"
	name, namespace := c.Object.Name, c.Object.Namespace
	annotate := func(change string) string {
		return hint.Kubectl(c.Place(), "annotate", "--overwrite", "etcd", name, api.ScopeAnnotation+change) + " (doc/cluster-wide.md)"
	}
	scope, wide := c.Object.Annotations[api.ScopeAnnotation]
	if wide && scope != api.ScopeClusterWide {
		d.add(check, Failure, "set it to "+api.ScopeClusterWide+", or remove it: "+annotate("-"),
			"no operator manages %s: its annotation %s has the value %q, which no operator follows", name, api.ScopeAnnotation, scope)
		return
	}
	o, err := operators.OfScope(ctx, d.Access, operators.Programs[0], wide)
	switch {
	case err != nil:
		d.unknown(check, err)
	case o != nil && o.Alive(d.Now()):
		d.add(check, OK, "", "%s/%s manages %s", o.Namespace, o.Pod, name)
	case wide:
		d.add(check, Failure, "start an etcd operator with -cluster-wide; or remove the annotation, if that of the namespace is to manage the cluster: "+annotate("-"),
			"no operator manages %s: it has the annotation %s, and no operator with -cluster-wide leads", name, api.ScopeAnnotation)
	default:
		d.add(check, Failure, "start the etcd operator of the namespace; or add the annotation, if one with -cluster-wide is to manage the cluster: "+annotate("="+api.ScopeClusterWide),
			"no operator manages %s: it lacks the annotation %s, and no operator of the namespace %s leads", name, api.ScopeAnnotation, namespace)
	}
}

func (d *Doctor) quorum(s *summary.Summary) {
	const check = "quorum"
	fix := hint.Etcd(s.Place(), "status", s.Name) + "; doc/user/status.md"
	switch s.State {
	case summary.Down:
		d.add(check, Failure, fix+"; doc/disaster.md", "%s", strings.Join(s.Reasons, "; "))
	case summary.Degraded:
		d.add(check, Warning, fix, "%s", strings.Join(s.Reasons, "; "))
	default:
		d.add(check, OK, "", "%d of %d voters are healthy: the cluster tolerates the loss of %d", s.Healthy, s.Voters, s.Tolerates)
	}
	if s.NotAsked != "" {
		d.add(check, Unknown, "you need the rights to create pods/portforward and to get the operatorSecret, and an API server that reaches the nodes", "the members were not asked: %s", s.NotAsked)
	}
}

// services looks for the Services by which members find each other and clients find them.
func (d *Doctor) services(ctx context.Context, c *observe.Cluster) {
	const check = "Services"
	fix := "the operator creates it: look at the operator's log, and at " + hint.Kubectl(c.Place(), "describe", "etcd", c.Object.Name)
	names := []string{c.Object.Name}
	if client := c.Object.Status.ServiceName; client != "" {
		names = append(names, client)
	}
	for _, name := range names {
		_, err := d.Access.Kube.CoreV1().Services(d.Access.Namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			d.add(check, Failure, fix, "the Service %s does not exist", name)
		case err != nil:
			d.unknown(check, err)
		default:
			d.add(check, OK, "", "the Service %s exists", name)
		}
	}
}

// budget looks at what drains of nodes may take.
func (d *Doctor) budget(ctx context.Context, c *observe.Cluster) {
	const check = "PodDisruptionBudget"
	if !c.Object.Spec.HasDisruptionBudget() {
		d.add(check, OK, "", "the spec asks for none")
		return
	}
	budget, err := d.Access.Kube.PolicyV1().PodDisruptionBudgets(d.Access.Namespace).Get(ctx, c.Object.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		d.add(check, Warning, "the operator creates it once the cluster serves: look at the operator's log", "there is none: a drain of nodes can take the quorum")
	case err != nil:
		d.unknown(check, err)
	case budget.Status.DisruptionsAllowed == 0:
		d.add(check, Warning, "wait until all members are ready", "a drain of nodes has to wait: %d of %d pods are healthy", budget.Status.CurrentHealthy, budget.Status.ExpectedPods)
	default:
		d.add(check, OK, "", "drains of nodes can take %d pods at a time", budget.Status.DisruptionsAllowed)
	}
}

func (d *Doctor) volumes(ctx context.Context, c *observe.Cluster) {
	const check = "volumes"
	if !c.Object.Spec.Persistent() {
		d.add(check, Warning, "consider spec.pod.persistentVolumeClaimSpec (doc/persistence.md)", "members keep their data in their pods: if all pods are lost, the data is lost")
		return
	}
	list, err := d.Access.Kube.CoreV1().PersistentVolumeClaims(d.Access.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=etcd,etcd_cluster=" + c.Object.Name})
	if err != nil {
		d.unknown(check, err)
		return
	}
	bound := 0
	for _, claim := range list.Items {
		if claim.Status.Phase == corev1.ClaimBound {
			bound++
			continue
		}
		d.add(check, Failure, hint.Kubectl(c.Place(), "describe", "pvc", claim.Name), "the volume of %s is %s", claim.Name, claim.Status.Phase)
	}
	if bound == len(list.Items) {
		d.add(check, OK, "", "%d volumes are bound", bound)
	}
	if class := c.Object.Spec.Pod.PersistentVolumeClaimSpec.StorageClassName; class != nil && *class != "" {
		found, err := d.Access.Kube.StorageV1().StorageClasses().Get(ctx, *class, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			d.add(check, Failure, "create it, or edit persistentVolumeClaimSpec", "the StorageClass %s does not exist", *class)
		case err != nil:
			d.unknown(check, err)
		default:
			d.judgeClass(check, found)
		}
	}
}

// quota says how full the databases are where nothing is wrong with them; the summary's
// advice says the rest.
func (d *Doctor) quota(s *summary.Summary) {
	fullest := 0.0
	for _, m := range s.Members {
		if m.DBQuota > 0 {
			fullest = max(fullest, float64(m.DBSize)/float64(m.DBQuota))
		}
	}
	if fullest > 0 {
		d.add("quota", OK, "", "the fullest database has %.0f %% of its quota", 100*fullest)
	}
}

func (d *Doctor) certificates(s *summary.Summary) {
	for _, c := range s.Certificates {
		if c.Problem == "" && !c.Expired && !c.Expiring {
			d.add("certificates", OK, "", "%s: good until %s", c.Use, c.Expires.UTC().Format("2006-01-02"))
		}
	}
}
