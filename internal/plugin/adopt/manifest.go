// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/etcd-operator/etcd-operator/deploy"
)

// The files are large, and parsed once.
var (
	namespacedFile  = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return parse(deploy.Namespaced) })
	clusterWideFile = sync.OnceValues(func() ([]*unstructured.Unstructured, error) { return parse(deploy.ClusterWide) })
)

const nameLabel = "app.kubernetes.io/name"

// manifest returns the objects that take the place of the old Deployments: the CRDs, and per
// program its ServiceAccount, its rights and its Deployment.
func (m *Move) manifest(olds []*old) ([]*unstructured.Unstructured, error) {
	wide := slices.ContainsFunc(olds, func(o *old) bool { return o.wide })
	var result []*unstructured.Unstructured
	for _, wideFile := range []bool{false, true} {
		objects, err := namespacedFile()
		if wideFile {
			objects, err = clusterWideFile()
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest of the operators: %w", err)
		}
		for _, object := range objects {
			object = object.DeepCopy()
			if object.GetKind() == definitionKind {
				if !wideFile {
					result = append(result, object)
				}
				continue
			}
			program := object.GetLabels()[nameLabel]
			anyScope := m.AnyScope && program != clusterProgram
			if wideFile != (wide || anyScope) {
				continue
			}
			from := ofProgram(olds, program)
			if from == nil {
				continue
			}
			if err := m.fit(object, from, anyScope); err != nil {
				return nil, err
			}
			result = append(result, object)
		}
	}
	return result, nil
}

func ofProgram(olds []*old, program string) *old {
	for _, o := range olds {
		if slices.Contains(o.programs, program) {
			return o
		}
	}
	return nil
}

// fit puts an object into the namespace, and gives a Deployment the place of the old one.
func (m *Move) fit(object *unstructured.Unstructured, from *old, anyScope bool) error {
	if kinds[object.GetKind()].namespaced {
		object.SetNamespace(m.Namespace)
	}
	switch object.GetKind() {
	case "RoleBinding", bindingKind:
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			subject.(map[string]any)["namespace"] = m.Namespace //nolint:forcetypeassert // the manifests are ours
		}
		return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
	case "Deployment":
		return m.fitDeployment(object, from, anyScope)
	}
	return nil
}

// placement is what a Deployment keeps of the old one: where its pods may run, and who may pull
// their images.
var placement = []string{"nodeSelector", "tolerations", "affinity", "priorityClassName", "imagePullSecrets"}

func (m *Move) fitDeployment(object *unstructured.Unstructured, from *old, anyScope bool) error {
	template := []string{"spec", "template", "spec"}
	before, err := toUnstructured(from.Deployment)
	if err != nil {
		return err
	}
	for _, field := range placement {
		path := append(slices.Clone(template), field)
		if value, there, _ := unstructured.NestedFieldCopy(before.Object, path...); there {
			if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
				return err
			}
		}
	}
	if err := unstructured.SetNestedField(object.Object, int64(max(1, from.replicas())), "spec", "replicas"); err != nil {
		return err
	}
	path := append(slices.Clone(template), "containers")
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil {
		return err
	}
	container := containers[0].(map[string]any) //nolint:forcetypeassert // the manifests are ours
	if m.Image != "" {
		container["image"] = m.Image
	}
	if anyScope {
		container["command"] = append(container["command"].([]any), "-any-scope") //nolint:forcetypeassert // the manifests are ours
	}
	return unstructured.SetNestedSlice(object.Object, containers, path...)
}

// parse reads the objects of a file of YAML documents.
func parse(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case object.Object != nil && object.GetKind() != "Namespace":
			objects = append(objects, object)
		}
	}
}
