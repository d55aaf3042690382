// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// resource is a resource of the API server, and whether its objects belong to a namespace.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

var (
	deployments = resource{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, true}
	pods        = resource{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}
	configMaps  = resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, true}
	namespaces  = resource{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, false}
	budgets     = resource{schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, true}
	crds        = resource{schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, false}
	clusters    = resource{api.SchemeGroupVersion.WithResource("etcdclusters"), true}
	backups     = resource{api.SchemeGroupVersion.WithResource("etcdbackups"), true}
	restores    = resource{api.SchemeGroupVersion.WithResource("etcdrestores"), true}
)

const bindingKind = "ClusterRoleBinding"

// kinds are the resources that the manifests contain.
var kinds = map[string]resource{
	definitionKind:   crds,
	"Deployment":     deployments,
	"ServiceAccount": {schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, true},
	"Role":           {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}, true},
	"RoleBinding":    {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}, true},
	"ClusterRole":    {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, false},
	bindingKind:      {schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}, false},
}

// store reads and writes objects.
type store struct {
	client    dynamic.Interface
	namespace string
}

func (s store) of(r resource) dynamic.ResourceInterface {
	if r.namespaced {
		return s.client.Resource(r.GroupVersionResource).Namespace(s.namespace)
	}
	return s.client.Resource(r.GroupVersionResource)
}

// get returns nil if there is no such object.
func (s store) get(ctx context.Context, r resource, name string) (*unstructured.Unstructured, error) {
	object, err := s.of(r).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// everywhere lists the objects of all namespaces. If the API server does not know the resource,
// there are none.
func (s store) everywhere(ctx context.Context, r resource) ([]unstructured.Unstructured, error) {
	list, err := s.client.Resource(r.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s of all namespaces: %w", r.Resource, err)
	}
	return list.Items, nil
}

// put creates an object, or replaces the one of the same name. A ServiceAccount that exists
// stays as it is, because others add Secrets and annotations to it. A CustomResourceDefinition keeps
// what others added. Operators that run may write it between the look and the write: put looks again.
func (s store) put(ctx context.Context, object *unstructured.Unstructured, dryRun bool) error {
	r := kinds[object.GetKind()]
	var all []string
	if dryRun {
		all = []string{metav1.DryRunAll}
	}
	overtaken := func(err error) bool { return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) }
	err := retry.OnError(retry.DefaultBackoff, overtaken, func() error {
		there, err := s.get(ctx, r, object.GetName())
		switch {
		case err != nil:
			return err
		case there == nil:
			_, err = s.of(r).Create(ctx, object, metav1.CreateOptions{DryRun: all})
			return err
		case object.GetKind() == "ServiceAccount":
			return nil
		}
		replacement := object.DeepCopy()
		replacement.SetResourceVersion(there.GetResourceVersion())
		if object.GetKind() == definitionKind {
			if err := keepOthers(replacement, there); err != nil {
				return err
			}
		}
		_, err = s.of(r).Update(ctx, replacement, metav1.UpdateOptions{DryRun: all})
		return err
	})
	if err != nil {
		return fmt.Errorf("put %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
