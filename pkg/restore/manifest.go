// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// manifest is an EtcdCluster to be made, in JSON: what kubectl create takes. The
// annotation that has it begin with a backup is not in it: by hand it makes an empty
// cluster.
type manifest string

// manifestOf is what an EtcdCluster that exists is made of. Fields that this operator
// does not know are in it as well.
func manifestOf(live *unstructured.Unstructured) (manifest, error) {
	spec, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return "", err
	}
	metadata := map[string]any{}
	if labels := live.GetLabels(); len(labels) > 0 {
		metadata["labels"] = anyOf(labels)
	}
	annotations := map[string]string{}
	maps.Copy(annotations, live.GetAnnotations())
	delete(annotations, api.RestoreAnnotation)
	delete(annotations, api.RecoverAnnotation) // this restore does what it asks for
	if literal, _, _ := unstructured.NestedBool(live.Object, "status", "literalTags"); literal {
		annotations[api.LiteralTagsAnnotation] = "true" // no pod of the new cluster shows it yet
	}
	if len(annotations) > 0 {
		metadata["annotations"] = anyOf(annotations)
	}
	if owners, found, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences"); found && len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}
	if version, _, _ := unstructured.NestedString(spec, "version"); version == "" {
		// The cluster stays at its version, whatever the operator's default has become.
		if current, _, _ := unstructured.NestedString(live.Object, "status", "currentVersion"); current != "" {
			spec["version"] = current
		}
	}
	return assemble(live.GetNamespace(), live.GetName(), metadata, spec)
}

// manifestFrom is what a template asks for.
func manifestFrom(obj *api.EtcdRestore) (manifest, error) {
	t := obj.Spec.ClusterTemplate
	spec := &unstructured.Unstructured{}
	if err := spec.UnmarshalJSON([]byte(`{"kind":"EtcdCluster","spec":` + string(t.Spec.Raw) + `}`)); err != nil {
		return "", fmt.Errorf("spec.clusterTemplate.spec: %w", err)
	}
	content, _, err := unstructured.NestedMap(spec.Object, "spec")
	if err != nil {
		return "", fmt.Errorf("spec.clusterTemplate.spec: %w", err)
	}
	if typed, err := t.ClusterSpec(); err == nil && typed.Version == "" {
		// The etcd operator may have another default.
		content["version"] = typed.EffectiveVersion()
	}
	metadata := map[string]any{}
	if len(t.Metadata.Labels) > 0 {
		metadata["labels"] = anyOf(t.Metadata.Labels)
	}
	annotations := maps.Clone(t.Metadata.Annotations)
	delete(annotations, api.RestoreAnnotation)
	if len(annotations) > 0 {
		metadata["annotations"] = anyOf(annotations)
	}
	if obj.IsTest() {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": api.SchemeGroupVersion.String(), "kind": api.EtcdRestoreResourceKind,
			"name": obj.Name, "uid": string(obj.UID),
		}}
	}
	return assemble(obj.Namespace, obj.Name, metadata, content)
}

func assemble(namespace, name string, metadata, spec map[string]any) (manifest, error) {
	metadata["namespace"], metadata["name"] = namespace, name
	text, err := (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": api.SchemeGroupVersion.String(), "kind": api.EtcdClusterResourceKind,
		"metadata": metadata, "spec": spec,
	}}).MarshalJSON()
	if err != nil {
		return "", fmt.Errorf("write down EtcdCluster %s: %w", name, err)
	}
	return manifest(text), nil
}

// saved is the manifest in a status.
func saved(st *api.RestoreStatus) (manifest, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(st.Cluster.Raw); err != nil {
		return "", fmt.Errorf("read the manifest in status.cluster: %w", err)
	}
	text, err := u.MarshalJSON() // as assemble has written it, whoever has since
	if err != nil {
		return "", fmt.Errorf("read the manifest in status.cluster: %w", err)
	}
	return manifest(text), nil
}

// cluster is the EtcdCluster that the manifest makes, to begin with a backup.
func (m manifest) cluster(annotation string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(m)); err != nil {
		return nil, fmt.Errorf("read the manifest of the cluster: %w", err)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.RestoreAnnotation] = annotation
	u.SetAnnotations(annotations)
	return u, nil
}

// spec is that of the cluster, as far as this operator knows its fields.
func (m manifest) spec() (*api.ClusterSpec, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(m)); err != nil {
		return nil, fmt.Errorf("read the manifest of the cluster: %w", err)
	}
	var c api.EtcdCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
		return nil, fmt.Errorf("EtcdCluster %s is not of the form that the operator knows: %w", u.GetName(), err)
	}
	return &c.Spec, nil
}

func (m manifest) raw() *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(m)} }

func anyOf(m map[string]string) map[string]any {
	all := make(map[string]any, len(m))
	for k, v := range m {
		all[k] = v
	}
	return all
}
