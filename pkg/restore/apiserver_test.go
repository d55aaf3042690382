// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	versionedfake "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/fake"
	etcdscheme "github.com/etcd-operator/etcd-operator/pkg/generated/clientset/versioned/scheme"
	"github.com/etcd-operator/etcd-operator/pkg/readiness/readinesstest"
)

// apiServer is what a real one is to us: UIDs, resourceVersions, generations,
// preconditions, finalizers, and the garbage collector. Three clientsets share it.
type apiServer struct {
	t       *testing.T
	kube    *fake.Clientset
	etcd    *versionedfake.Clientset
	dynamic *dynamicfake.FakeDynamicClient

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured // by resource and name
	version int
	uids    int
	// ending means that the namespace is being deleted.
	ending bool
	// latency is how long each request takes.
	latency time.Duration
	// lacking are rights that the operator does not have, such as "patch services".
	lacking map[string]bool
	// drops is a field of the status that the CustomResourceDefinition lacks.
	drops string
	// before and after each request of the clientsets, with the lock held; an error of
	// before is the answer, one of after is so though the request was done.
	before, after func(verb, resource, name string, action clienttesting.Action) error
}

func newAPIServer(t *testing.T) *apiServer {
	// Without managed fields, as in pkg/cluster.
	s := &apiServer{t: t, kube: fake.NewSimpleClientset(), etcd: versionedfake.NewSimpleClientset(), objects: map[string]*unstructured.Unstructured{}}
	s.dynamic = dynamicfake.NewSimpleDynamicClient(etcdscheme.Scheme)
	s.kube.PrependReactor("*", "*", s.react)
	s.etcd.PrependReactor("*", "*", s.react)
	s.dynamic.PrependReactor("*", "*", s.react)
	return s
}

var kinds = map[string]schema.GroupVersionKind{
	"etcdclusters":           api.SchemeGroupVersion.WithKind("EtcdCluster"),
	"etcdrestores":           api.SchemeGroupVersion.WithKind("EtcdRestore"),
	"secrets":                {Version: "v1", Kind: "Secret"},
	"services":               {Version: "v1", Kind: "Service"},
	"pods":                   {Version: "v1", Kind: "Pod"},
	"persistentvolumeclaims": {Version: "v1", Kind: "PersistentVolumeClaim"},
}

// typed is an object as the clientset of its resource wants it.
func typed(resource string, u *unstructured.Unstructured) (runtime.Object, error) {
	if resource == "etcdclusters" {
		return u.DeepCopy(), nil
	}
	gvk := kinds[resource]
	known := scheme.Scheme
	if gvk.Group == api.GroupName {
		known = etcdscheme.Scheme
	}
	obj, err := known.New(gvk)
	if err != nil {
		return nil, err
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj)
}

func untyped(resource string, obj runtime.Object) *unstructured.Unstructured {
	text, err := json.Marshal(obj)
	u := &unstructured.Unstructured{}
	if err == nil {
		err = utiljson.Unmarshal(text, &u.Object)
	}
	if err != nil {
		return nil
	}
	u.SetGroupVersionKind(kinds[resource])
	return u
}

// seenIn is an object of which the operator has seen the last edit.
func seenIn(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"status": u.Object["status"]}
}

func named(resource, name string) string { return resource + "/" + name }

func (s *apiServer) get(resource, name string) *unstructured.Unstructured {
	return s.objects[named(resource, name)]
}

// all are the objects of a resource, by name.
func (s *apiServer) all(resource string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, u := range s.objects {
		if strings.HasPrefix(key, resource+"/") {
			found = append(found, u)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}

func (s *apiServer) bump(u *unstructured.Unstructured) {
	s.version++
	u.SetResourceVersion(strconv.Itoa(s.version))
}

// add stores a new object.
func (s *apiServer) add(resource string, obj runtime.Object) *unstructured.Unstructured {
	u := untyped(resource, obj)
	s.uids++
	u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	u.SetNamespace("ns")
	u.SetCreationTimestamp(metav1.Now())
	u.SetGeneration(1)
	if resource == "etcdclusters" || resource == "etcdrestores" {
		delete(u.Object, "status")
	}
	s.bump(u)
	s.objects[named(resource, u.GetName())] = u
	return u
}

// put stores another state of an object.
func (s *apiServer) put(resource string, u *unstructured.Unstructured) {
	before := s.get(resource, u.GetName())
	if before != nil && !same(before.Object["spec"], u.Object["spec"]) {
		u.SetGeneration(u.GetGeneration() + 1)
	}
	s.bump(u)
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && resource != "pods" {
		delete(s.objects, named(resource, u.GetName()))
		return
	}
	s.objects[named(resource, u.GetName())] = u
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// remove is what kubectl delete does. Pods end by their kubelet.
func (s *apiServer) remove(resource, name string) {
	u := s.get(resource, name)
	if u == nil || u.GetDeletionTimestamp() != nil {
		return
	}
	u = u.DeepCopy()
	now := metav1.Now()
	if resource == "pods" {
		now = metav1.NewTime(now.Add(30 * time.Second))
	}
	u.SetDeletionTimestamp(&now)
	u.SetGeneration(u.GetGeneration() + 1)
	s.put(resource, u)
}

// collect is the garbage collector.
func (s *apiServer) collect() {
	alive := map[types.UID]bool{}
	for _, u := range s.objects {
		alive[u.GetUID()] = true
	}
	for key, u := range s.objects {
		refs := u.GetOwnerReferences()
		if len(refs) > 0 && !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return alive[r.UID] }) {
			resource, name, _ := strings.Cut(key, "/")
			s.remove(resource, name)
		}
	}
}

func (s *apiServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	latency := s.latency
	s.mu.Unlock()
	time.Sleep(latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	verb, resource := action.GetVerb(), action.GetResource().Resource
	if create, ok := action.(clienttesting.CreateAction); ok && action.GetResource().Group == "authorization.k8s.io" {
		if err := s.before("get", resource, "", action); err != nil { // it changes nothing
			return true, nil, err
		}
		return true, s.review(create.GetObject()), nil
	}
	if _, known := kinds[resource]; !known {
		return true, nil, fmt.Errorf("%s %s: nobody expects that", verb, resource)
	}
	name := ""
	if n, ok := action.(interface{ GetName() string }); ok {
		name = n.GetName()
	}
	if o, ok := action.(interface{ GetObject() runtime.Object }); ok {
		name = o.GetObject().(metav1.Object).GetName()
	}
	if err := s.before(verb, resource, name, action); err != nil {
		return true, nil, err
	}
	if !s.allowed(verb, resource, action.GetSubresource()) {
		return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), name, errors.New("RBAC says no"))
	}
	obj, err := s.do(verb, resource, name, action)
	if err == nil {
		err = s.after(verb, resource, name, action)
	}
	if err != nil {
		return true, nil, err
	}
	return true, obj, nil
}

func (s *apiServer) allowed(verb, resource, subresource string) bool {
	return !s.lacking[right{verb: verb, resource: resource, subresource: subresource}.String()]
}

// review shows the operator what it may do.
func (s *apiServer) review(asked runtime.Object) runtime.Object {
	switch asked := asked.(type) {
	case *authorizationv1.SelfSubjectAccessReview:
		of := asked.Spec.ResourceAttributes
		asked.Status.Allowed = s.allowed(of.Verb, of.Resource, of.Subresource)
	case *authorizationv1.SelfSubjectRulesReview:
		for resource, gvk := range kinds {
			for _, verb := range []string{"get", "list", "create", "update", "patch", "delete"} {
				for _, subresource := range []string{"", "status"} {
					if r := (right{verb: verb, resource: resource, subresource: subresource}); s.allowed(verb, resource, subresource) {
						_, combined, _ := strings.Cut(r.String(), " ")
						asked.Status.ResourceRules = append(asked.Status.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{verb}, APIGroups: []string{gvk.Group}, Resources: []string{combined}})
					}
				}
			}
		}
	}
	return asked
}

func (s *apiServer) do(verb, resource, name string, action clienttesting.Action) (runtime.Object, error) {
	group := schema.GroupResource{Group: kinds[resource].Group, Resource: resource}
	current := s.get(resource, name)
	if current == nil && verb != "create" && verb != "list" {
		return nil, apierrors.NewNotFound(group, name)
	}
	changed := apierrors.NewConflict(group, name, errors.New("it has changed"))
	switch verb {
	case "get":
		return typed(resource, current)
	case "list":
		return s.list(resource, action.(clienttesting.ListAction).GetListRestrictions().Labels)
	case "create":
		a := action.(clienttesting.CreateActionImpl)
		if s.ending {
			err := apierrors.NewForbidden(group, name, errors.New("the namespace is being terminated"))
			err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
			return nil, err
		}
		if current != nil {
			return nil, apierrors.NewAlreadyExists(group, name)
		}
		if len(a.CreateOptions.DryRun) > 0 {
			return a.Object, nil
		}
		return typed(resource, s.add(resource, a.Object))
	case "update":
		u := untyped(resource, action.(clienttesting.UpdateAction).GetObject())
		if action.GetSubresource() != "status" {
			return nil, errors.New("the object itself was written")
		}
		if u.GetUID() != current.GetUID() || u.GetResourceVersion() != current.GetResourceVersion() {
			return nil, changed
		}
		if _, _, err := readinesstest.Judge(seenIn(u)); err != nil {
			s.t.Errorf("status %v: %v", u.Object["status"], err)
		}
		next := current.DeepCopy()
		next.Object["status"] = u.Object["status"]
		delete(next.Object["status"].(map[string]any), s.drops)
		s.put(resource, next)
		return typed(resource, next)
	case "patch":
		var patch map[string]any
		if err := utiljson.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			return nil, err
		}
		metadata := patch["metadata"].(map[string]any)
		if metadata["uid"] != string(current.GetUID()) || metadata["resourceVersion"] != current.GetResourceVersion() {
			return nil, changed
		}
		next := current.DeepCopy()
		next.Object = merged(next.Object, patch)
		if current.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) > len(current.GetFinalizers()) {
			return nil, apierrors.NewInvalid(kinds[resource].GroupKind(), name, nil)
		}
		s.put(resource, next)
		return typed(resource, next)
	case "delete":
		p := action.(clienttesting.DeleteActionImpl).DeleteOptions.Preconditions
		if p == nil || p.UID == nil || *p.UID != current.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != current.GetResourceVersion() {
			return nil, changed
		}
		s.remove(resource, name)
		return nil, nil
	}
	return nil, fmt.Errorf("%s %s: nobody expects that", verb, resource)
}

func (s *apiServer) list(resource string, selector labels.Selector) (runtime.Object, error) {
	list := map[string]any{}
	items := []any{}
	for _, u := range s.all(resource) {
		if selector.Matches(labels.Set(u.GetLabels())) {
			items = append(items, u.Object)
		}
	}
	list["items"] = items
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	obj, err := scheme.Scheme.New(kinds[resource].GroupVersion().WithKind(kinds[resource].Kind + "List"))
	if err != nil {
		return nil, err
	}
	return obj, json.Unmarshal(text, obj)
}

// merged is a JSON merge patch.
func merged(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, _ := target[key].(map[string]any)
			target[key] = merged(inner, value)
		default:
			target[key] = value
		}
	}
	return target
}
