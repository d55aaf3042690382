// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"maps"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const definitionKind = "CustomResourceDefinition"

// keepOthers leaves a CRD what others have added to the live one: labels, annotations and the
// conversion. Without "helm.sh/resource-policy: keep", Helm deletes CRDs that leave its chart, and
// Kubernetes all clusters with them. What the manifests of this release set counts as ours.
func keepOthers(crd, live *unstructured.Unstructured) error {
	objects, err := namespacedFile()
	if err != nil {
		return err
	}
	labels, annotations := live.GetLabels(), live.GetAnnotations()
	for _, object := range objects {
		if object.GetKind() != definitionKind {
			continue
		}
		for key := range object.GetLabels() {
			delete(labels, key)
		}
		for key := range object.GetAnnotations() {
			delete(annotations, key)
		}
	}
	crd.SetLabels(merged(labels, crd.GetLabels()))
	crd.SetAnnotations(merged(annotations, crd.GetAnnotations()))
	conversion, there, err := unstructured.NestedMap(live.Object, "spec", "conversion")
	if err != nil || !there {
		return err
	}
	return unstructured.SetNestedMap(crd.Object, conversion, "spec", "conversion")
}

// merged returns nil if both maps are empty.
func merged(others, ours map[string]string) map[string]string {
	if len(others) == 0 {
		return ours
	}
	maps.Copy(others, ours)
	return others
}

// checkDefinitions looks for CRDs of a later release, which its operators need.
func (m *Move) checkDefinitions(ctx context.Context, p *Plan) error {
	for _, object := range p.after {
		if object.GetKind() != definitionKind {
			continue
		}
		live, err := m.get(ctx, crds, object.GetName())
		if err != nil {
			return err
		}
		if live != nil && newer(live, object) {
			p.add(Obstacle, "use kubectl etcd of that release or a later one",
				"the CRD %s is that of operator %s, which is newer than the one of this command, %s",
				object.GetName(), live.GetAnnotations()[api.OperatorVersionAnnotation], object.GetAnnotations()[api.OperatorVersionAnnotation])
		}
	}
	return nil
}

// newer reports whether a CRD has the stamp of a later operator. One without a version is older.
func newer(live, object *unstructured.Unstructured) bool {
	theirs, err := semver.ParseTolerant(live.GetAnnotations()[api.OperatorVersionAnnotation])
	if err != nil {
		return false
	}
	own, err := semver.ParseTolerant(object.GetAnnotations()[api.OperatorVersionAnnotation])
	return err == nil && theirs.GT(own)
}
