// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Back is a way back that has been looked up.
type Back struct {
	Checked
	before, after []*unstructured.Unstructured
	olds          []*old
}

// PlanBack reads what the move recorded. It changes nothing.
func (m *Move) PlanBack(ctx context.Context) (*Back, error) {
	before, err := m.readRecord(ctx)
	if err != nil {
		return nil, err
	}
	if before == nil {
		return nil, fmt.Errorf("the namespace %s has no ConfigMap %s: nothing was moved here, or the way back is done", m.Namespace, RecordName)
	}
	p := &Plan{}
	if _, err := p.findOld(m.Namespace, nil, before); err != nil {
		return nil, err
	}
	after, err := m.manifest(p.olds)
	if err != nil {
		return nil, err
	}
	// Where another namespace moved before, its record has the old CRDs, and this one those of
	// this release. They are not what old operators work with, wherever the way back begins.
	b := &Back{before: slices.DeleteFunc(before, ofThisRelease), after: after, olds: p.olds}
	b.checkReplicas(m.Place())
	if err := m.checkUnfinished(ctx, b, p.wide()); err != nil {
		return nil, err
	}
	return b, m.checkBack(ctx, b)
}

// checkUnfinished looks for objects in the middle of what the old operators do not know. Nobody would take
// their finalizers off either.
func (m *Move) checkUnfinished(ctx context.Context, b *Back, wide bool) error {
	for _, u := range []struct {
		resource                resource
		finalizer, fix, problem string
	}{
		{
			clusters, api.ImportFinalizer, "let it end, or delete the EtcdCluster and wait until it is gone",
			"the EtcdCluster %s/%s is in the middle of an import, which old operators do not finish: its members keep their votes in the imported etcd, or that keeps refusing writes",
		},
		{restores, api.RestoreFinalizer, "let it end", "the EtcdRestore %s/%s has begun, and old operators do not finish it: its cluster can stay without pods"},
	} {
		objects, err := m.everywhere(ctx, u.resource)
		if err != nil {
			return err
		}
		for i := range objects {
			o := &objects[i]
			if (m.AnyScope && u.resource == restores || m.inScope(o, wide)) && slices.Contains(o.GetFinalizers(), u.finalizer) {
				b.add(Problem, u.fix, u.problem, o.GetNamespace(), o.GetName())
			}
		}
	}
	return nil
}

// ofThisRelease reports whether an object is a CRD with a subresource for the status. Those of
// v0.9.4 and its fork have none.
func ofThisRelease(object *unstructured.Unstructured) bool {
	if object.GetKind() != definitionKind {
		return false
	}
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(version any) bool {
		v, ok := version.(map[string]any)
		if !ok {
			return false
		}
		_, status, _ := unstructured.NestedMap(v, "subresources", "status")
		return status
	})
}

// checkReplicas looks for an etcd operator that had no pods before the move. It gets none back.
func (b *Back) checkReplicas(place hint.Place) {
	for _, o := range b.olds {
		if o.replicas() == 0 && slices.Contains(o.programs, clusterProgram) {
			b.add(Problem, "start it right after this: "+hint.Kubectl(place, "scale", "deployment", o.Name, "--replicas=1"),
				"the Deployment %s had 0 replicas before the move: after the way back, no operator manages the clusters", o.Name)
		}
	}
}

// Stopped are the old Deployments that stay without pods, as before the move.
func (b *Back) Stopped() []string {
	var names []string
	for _, o := range b.olds {
		if o.replicas() == 0 {
			names = append(names, o.Name)
		}
	}
	return names
}

// checkBack looks for operators that the CRDs would not fit after the way back: all namespaces
// share them.
func (m *Move) checkBack(ctx context.Context, b *Back) error {
	if !slices.ContainsFunc(b.before, func(o *unstructured.Unstructured) bool { return o.GetKind() == definitionKind }) {
		there, err := m.get(ctx, crds, api.EtcdClusterCRDName)
		if err == nil && there != nil && ofThisRelease(there) {
			b.add(Problem, "go back in the namespace that moved first too, because its ConfigMap "+RecordName+" has the old CRDs",
				"the CRDs of this release were there before the move, and stay: with them, the old operators cannot write the status")
		}
		return err
	}
	all, err := m.everywhere(ctx, deployments)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].GetNamespace() == m.Namespace || !ours(&all[i]) {
			continue
		}
		o, err := operatorOf(&all[i])
		if err != nil {
			return err
		}
		if o != nil && o.replicas() > 0 {
			b.add(Problem, "go back there right after this", "%s/%s of this release shares the CRDs: with the old ones, it cannot write the status, and does nothing", o.Namespace, o.Name)
		}
	}
	return nil
}

// Steps are what the way back does, one line each.
func (b *Back) Steps() []string {
	var steps []string
	for _, object := range b.after {
		if object.GetKind() == "Deployment" {
			steps = append(steps, "delete deployment/"+object.GetName()+" of this release, and wait until its pods end")
		}
	}
	for _, object := range b.before {
		steps = append(steps, "restore "+strings.ToLower(object.GetKind())+"/"+object.GetName())
	}
	return append(steps, "delete configmap/"+RecordName)
}

// RunBack goes back, from the step that is next.
func (m *Move) RunBack(ctx context.Context, b *Back) error {
	for _, object := range b.after {
		if object.GetKind() != "Deployment" {
			continue
		}
		there, err := m.get(ctx, deployments, object.GetName())
		if err != nil {
			return err
		}
		if there != nil && ours(there) {
			if err := m.remove(ctx, deployments, there); err != nil {
				return err
			}
			m.Say("deployment/%s of this release deleted", object.GetName())
		}
	}
	// The new rights go with the operators, and the old CRDs come before the old operators:
	// these write the status with the rest of the object.
	for _, object := range b.after {
		if err := m.withdraw(ctx, b, object); err != nil {
			return err
		}
	}
	for _, deployment := range []bool{false, true} {
		for _, object := range b.before {
			if (object.GetKind() == "Deployment") != deployment {
				continue
			}
			if err := m.restore(ctx, object); err != nil {
				return err
			}
		}
	}
	if err := m.untilAvailable(ctx, b.wanted()); err != nil {
		return err
	}
	record, err := m.get(ctx, configMaps, RecordName)
	if err != nil || record == nil {
		return err
	}
	return m.remove(ctx, configMaps, record)
}

// wanted are the old Deployments that had pods.
func (b *Back) wanted() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(b.before), func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Deployment" && slices.Contains(b.Stopped(), object.GetName())
	})
}

// withdraw deletes what the move created, except for the CRDs: their objects would go too.
func (m *Move) withdraw(ctx context.Context, b *Back, object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case definitionKind, "Deployment":
		return nil
	}
	if slices.ContainsFunc(b.before, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == object.GetKind() && o.GetName() == object.GetName()
	}) {
		return nil
	}
	r := kinds[object.GetKind()]
	there, err := m.get(ctx, r, object.GetName())
	// A ServiceAccount that was there before has no label of the manifests.
	if err != nil || there == nil || !ours(there) {
		return err
	}
	return m.remove(ctx, r, there)
}

// restore puts an object back as it was. An old Deployment that still exists only gets its
// replicas back.
func (m *Move) restore(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetKind() == "Deployment" {
		there, err := m.get(ctx, deployments, object.GetName())
		if err != nil {
			return err
		}
		if there != nil {
			replicas, given, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
			if !given {
				replicas = 1
			}
			return m.scale(ctx, there, replicas, nil)
		}
	}
	if err := m.put(ctx, object, false); err != nil {
		return err
	}
	m.Say("%s/%s restored", strings.ToLower(object.GetKind()), object.GetName())
	return nil
}
