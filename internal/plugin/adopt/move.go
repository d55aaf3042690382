// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adopt replaces the operators of v0.9.4 or its fork by those of this release, and goes
// back. The pods of etcd stay. Each step can be repeated, so that a move that was interrupted
// continues.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Move replaces the operators of one namespace.
type Move struct {
	store
	Namespace string
	// Chosen are the flags with which the user has chosen the Kubernetes cluster.
	Chosen []string
	// Image of the operators; empty for the one of the release.
	Image string
	// AnyScope lets the backup operator and the restore operator handle the objects of all
	// namespaces, whatever their annotation.
	AnyScope bool
	// Until calls a function until it is done. It shows the state to the user.
	Until func(ctx context.Context, look func(context.Context) (state string, done bool, err error)) error
	// Say prints one line.
	Say func(format string, args ...any)
}

// New returns a Move in a namespace.
func New(client dynamic.Interface, namespace string) *Move {
	return &Move{store: store{client, namespace}, Namespace: namespace}
}

// Place is where recommended commands work.
func (m *Move) Place() hint.Place { return hint.Place{Namespace: m.Namespace, Chosen: m.Chosen} }

// Plan is a move that has been checked.
type Plan struct {
	Checked
	// Continues is true if a move had begun before.
	Continues bool

	olds []*old
	// before are the objects that the move replaces, as they were.
	before []*unstructured.Unstructured
	after  []*unstructured.Unstructured
}

// Plan looks at everything and changes nothing.
func (m *Move) Plan(ctx context.Context) (*Plan, error) {
	p := &Plan{}
	before, err := m.readRecord(ctx)
	if err != nil {
		return nil, err
	}
	all, err := m.everywhere(ctx, deployments)
	if err != nil {
		return nil, err
	}
	elsewhere, err := p.findOld(m.Namespace, all, before)
	if err != nil {
		return nil, err
	}
	if len(p.olds) == 0 {
		return nil, fmt.Errorf("the namespace %s has no Deployment of an operator of v0.9.4 or its fork: -n names its namespace", m.Namespace)
	}
	if p.after, err = m.manifest(p.olds); err != nil {
		return nil, err
	}
	if before != nil {
		p.Continues, p.before = true, before
	} else if err := m.saveBefore(ctx, p); err != nil {
		return nil, err
	}
	return p, m.check(ctx, p, elsewhere)
}

// findOld takes the old Deployments from the record of a move that has begun, or from the
// namespace. It returns operators of other namespaces that run, of any release.
func (p *Plan) findOld(namespace string, all []unstructured.Unstructured, before []*unstructured.Unstructured) (elsewhere []*old, err error) {
	for i := range all {
		o, err := operatorOf(&all[i])
		switch {
		case err != nil:
			return nil, err
		case o == nil:
		case o.Namespace != namespace:
			if o.replicas() > 0 {
				elsewhere = append(elsewhere, o)
			}
		case before == nil && !ours(o):
			p.olds = append(p.olds, o)
		}
	}
	for _, object := range before {
		if object.GetKind() != "Deployment" {
			continue
		}
		o, err := oldOf(object)
		if err != nil {
			return nil, err
		}
		if o != nil {
			p.olds = append(p.olds, o)
		}
	}
	return elsewhere, nil
}

// saveBefore reads the objects that the move replaces.
func (m *Move) saveBefore(ctx context.Context, p *Plan) error {
	for _, o := range p.olds {
		object, err := m.get(ctx, deployments, o.Name)
		if err != nil {
			return err
		}
		if object == nil {
			return fmt.Errorf("the Deployment %s is gone: run the command again", o.Name)
		}
		p.before = append(p.before, clean(object))
	}
	for _, object := range p.after {
		if object.GetKind() == "Deployment" || object.GetKind() == "ServiceAccount" {
			continue
		}
		there, err := m.get(ctx, kinds[object.GetKind()], object.GetName())
		if err != nil {
			return err
		}
		if there != nil {
			p.before = append(p.before, clean(there))
		}
	}
	return nil
}

// Steps are what the move does, one line each.
func (p *Plan) Steps() []string {
	steps := []string{"record the old objects in configmap/" + RecordName}
	for _, o := range p.olds {
		steps = append(steps, "scale deployment/"+o.Name+" to 0, and wait until its pods end")
	}
	for _, object := range p.after {
		step := "apply " + strings.ToLower(object.GetKind()) + "/" + object.GetName()
		if object.GetKind() == "Deployment" && slices.ContainsFunc(p.olds, func(o *old) bool { return o.Name == object.GetName() }) {
			step += ", after the old one of that name is deleted"
		}
		steps = append(steps, step)
	}
	return append(steps, "wait until the operators manage the clusters")
}

// Run does the move, from the step that is next. At its end the new operators care for the
// clusters.
func (m *Move) Run(ctx context.Context, p *Plan) error {
	if !p.Continues {
		if err := m.writeRecord(ctx, p.before, nil); err != nil {
			return err
		}
		m.Say("configmap/%s created: it holds the old objects for the way back", RecordName)
	}
	for _, o := range p.olds {
		if err := m.stop(ctx, o); err != nil {
			return err
		}
	}
	if err := m.untilEnded(ctx, p.olds); err != nil {
		return err
	}
	for _, object := range p.after {
		if err := m.makeRoom(ctx, object); err != nil {
			return err
		}
		if err := m.put(ctx, object, false); err != nil {
			return err
		}
		m.Say("%s/%s applied", strings.ToLower(object.GetKind()), object.GetName())
	}
	if err := m.untilAvailable(ctx, p.after); err != nil {
		return err
	}
	return m.untilCaredFor(ctx, p)
}

// stop scales an old Deployment down. One that is gone or replaced has been stopped before.
func (m *Move) stop(ctx context.Context, o *old) error {
	there, err := m.get(ctx, deployments, o.Name)
	if err != nil || there == nil || ours(there) {
		return err
	}
	return m.scale(ctx, there, 0, nil)
}

func (m *Move) scale(ctx context.Context, object *unstructured.Unstructured, replicas int64, dryRun []string) error {
	if now, there, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); there && now == replicas {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	if _, err := m.of(deployments).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun}); err != nil {
		return fmt.Errorf("scale the Deployment %s to %d: %w", object.GetName(), replicas, err)
	}
	if dryRun == nil {
		m.Say("deployment/%s scaled to %d", object.GetName(), replicas)
	}
	return nil
}

// untilEnded waits until the old operators have ended, so that no two lead at once: their locks
// differ.
func (m *Move) untilEnded(ctx context.Context, olds []*old) error {
	return m.untilGone(ctx, func(pod *unstructured.Unstructured) bool {
		return slices.ContainsFunc(olds, func(o *old) bool { return o.selects(pod) })
	})
}

func (m *Move) untilGone(ctx context.Context, is func(*unstructured.Unstructured) bool) error {
	return m.Until(ctx, func(ctx context.Context) (string, bool, error) {
		list, err := m.of(pods).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, fmt.Errorf("list the pods of the operators: %w", err)
		}
		for i := range list.Items {
			phase, _, _ := unstructured.NestedString(list.Items[i].Object, "status", "phase")
			if is(&list.Items[i]) && phase != "Failed" && phase != "Succeeded" {
				return "waiting until the pod " + list.Items[i].GetName() + " ends", false, nil
			}
		}
		return "", true, nil
	})
}

// makeRoom deletes an old Deployment that has the name of the new one. The selector of a
// Deployment cannot change, and the record holds the old one.
func (m *Move) makeRoom(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetKind() != "Deployment" {
		return nil
	}
	there, err := m.get(ctx, deployments, object.GetName())
	if err != nil || there == nil || ours(there) {
		return err
	}
	return m.remove(ctx, deployments, there)
}

// remove deletes an object and waits until it is gone. A Deployment goes after its pods.
func (m *Move) remove(ctx context.Context, r resource, object *unstructured.Unstructured) error {
	name, uid, after := object.GetName(), object.GetUID(), metav1.DeletePropagationForeground
	err := m.of(r).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &after})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", object.GetKind(), name, err)
	}
	return m.Until(ctx, func(ctx context.Context) (string, bool, error) {
		there, err := m.get(ctx, r, name)
		if err != nil || there == nil || there.GetUID() != uid {
			return "", true, err
		}
		return "waiting until " + strings.ToLower(object.GetKind()) + "/" + name + " is deleted", false, nil
	})
}

func (m *Move) untilAvailable(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		name := object.GetName()
		if err := m.Until(ctx, func(ctx context.Context) (string, bool, error) {
			there, err := m.get(ctx, deployments, name)
			if err != nil {
				return "", false, err
			}
			if there == nil {
				return "", false, fmt.Errorf("somebody deleted the Deployment %s: run the command again", name)
			}
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(there.Object, d); err != nil {
				return "", false, err
			}
			// A pod is ready before it leads: the old operator's Lease lasts up to 15 s.
			done := d.Status.ObservedGeneration >= d.Generation && d.Status.AvailableReplicas > 0
			return "waiting for a ready pod of deployment/" + name, done, nil
		}); err != nil {
			return fmt.Errorf("deployment/%s: %w", name, err)
		}
	}
	return nil
}

// untilCaredFor waits until the new operator has answered for the current spec of each cluster.
// v0.9.4 and the fork leave status.observedGeneration empty.
func (m *Move) untilCaredFor(ctx context.Context, p *Plan) error {
	if ofProgram(p.olds, clusterProgram) == nil {
		return nil
	}
	err := m.Until(ctx, func(ctx context.Context) (string, bool, error) {
		all, err := m.clusters(ctx)
		if err != nil {
			return "", false, err
		}
		for _, c := range all {
			if m.inScope(c, p.wide()) && c.DeletionTimestamp == nil && c.Status.ObservedGeneration < c.Generation {
				return fmt.Sprintf("waiting until the operator manages %s/%s", c.Namespace, c.Name), false, nil
			}
		}
		return "", true, nil
	})
	if err != nil {
		return err
	}
	return m.reportClusters(ctx, p)
}

func (m *Move) reportClusters(ctx context.Context, p *Plan) error {
	all, err := m.clusters(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if !m.inScope(c, p.wide()) {
			continue
		}
		line := fmt.Sprintf("etcdcluster/%s in %s: %s, %d of %d members ready", c.Name, c.Namespace, c.Status.Phase, c.Status.ReadyMembers, c.Spec.Size)
		if c.Status.Reason != "" {
			line += ": " + c.Status.Reason
		}
		m.Say("%s", line)
	}
	return nil
}

func (p *Plan) wide() bool { return slices.ContainsFunc(p.olds, func(o *old) bool { return o.wide }) }

// inScope reports whether the operators of this namespace handle an object. An annotation with another
// value keeps all operators away.
func (m *Move) inScope(object metav1.Object, wide bool) bool {
	scope, annotated := object.GetAnnotations()[api.ScopeAnnotation]
	if wide {
		return scope == api.ScopeClusterWide
	}
	return !annotated && object.GetNamespace() == m.Namespace
}

// clusters returns the EtcdClusters of all namespaces.
func (m *Move) clusters(ctx context.Context) ([]*api.EtcdCluster, error) {
	list, err := m.everywhere(ctx, clusters)
	if err != nil {
		return nil, err
	}
	var all []*api.EtcdCluster
	var unread error
	for i := range list {
		c := &api.EtcdCluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, c); err != nil {
			unread = errors.Join(unread, fmt.Errorf("read the EtcdCluster %s/%s: %w", list[i].GetNamespace(), list[i].GetName(), err))
			continue
		}
		all = append(all, c)
	}
	return all, unread
}
