// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// manifest decodes the objects of a shipped file after it has filled in the placeholders.
func (e *Env) manifest(path string, replace map[string]string) ([]runtime.Object, error) {
	text, err := os.ReadFile(filepath.Join(e.Root, path))
	if err != nil {
		return nil, err
	}
	for old, value := range replace {
		text = bytes.ReplaceAll(text, []byte(old), []byte(value))
	}
	var objects []runtime.Object
	documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	buffer := make([]byte, len(text)+1)
	for {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split %s: %w", path, err)
		}
		if len(bytes.TrimSpace(buffer[:n])) == 0 {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(buffer[:n], nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", path, err)
		}
		objects = append(objects, object)
	}
}

// Shipped returns the object of its kind in a manifest from example/, with arbitrary names in
// its placeholders.
func Shipped[T runtime.Object](n *Namespace, path string) T {
	n.t.Helper()
	objects, err := n.manifest(path, map[string]string{"<ROLE_NAME>": "shipped", "<ROLE_BINDING_NAME>": "shipped", "<NAMESPACE>": "shipped"})
	for _, object := range objects {
		if o, ok := object.(T); ok {
			return o
		}
	}
	n.t.Fatalf("%s does not hold a %T: %v", path, *new(T), err)
	return *new(T)
}

// create creates an object of one of the kinds in the operator's shipped manifests.
func create(ctx context.Context, kube kubernetes.Interface, namespace string, object runtime.Object) error {
	var err error
	opts := metav1.CreateOptions{}
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		_, err = kube.RbacV1().ClusterRoles().Create(ctx, o, opts)
	case *rbacv1.ClusterRoleBinding:
		_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, o, opts)
	case *rbacv1.Role:
		_, err = kube.RbacV1().Roles(namespace).Create(ctx, o, opts)
	case *rbacv1.RoleBinding:
		_, err = kube.RbacV1().RoleBindings(namespace).Create(ctx, o, opts)
	case *appsv1.Deployment:
		o.Namespace = namespace
		_, err = kube.AppsV1().Deployments(namespace).Create(ctx, o, opts)
	default:
		err = fmt.Errorf("the harness knows no %T", object)
	}
	return err
}

// remove deletes the cluster-scoped objects that create has created.
func remove(ctx context.Context, kube kubernetes.Interface, object runtime.Object) error {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		return kube.RbacV1().ClusterRoles().Delete(ctx, o.Name, metav1.DeleteOptions{})
	case *rbacv1.ClusterRoleBinding:
		return kube.RbacV1().ClusterRoleBindings().Delete(ctx, o.Name, metav1.DeleteOptions{})
	}
	return nil
}

// setFlags replaces or adds flags to the command of a Deployment's container.
func setFlags(deployment *appsv1.Deployment, flags []string) {
	container := &deployment.Spec.Template.Spec.Containers[0]
	list := &container.Args
	if len(container.Args) == 0 {
		list = &container.Command
	}
	for _, flag := range flags {
		name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		kept := (*list)[:0]
		for _, old := range *list {
			if oldName, _, _ := strings.Cut(strings.TrimLeft(old, "-"), "="); !strings.HasPrefix(old, "-") || oldName != name {
				kept = append(kept, old)
			}
		}
		kept = append(kept, flag)
		*list = kept
	}
}
