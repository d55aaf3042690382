// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/internal/plugin/adopt"
)

// world is a Kubernetes whose controllers act as soon as an object changes.
type world struct {
	t      *testing.T
	client *fake.FakeDynamicClient
	said   []string
	// writes counts the writes that are no rehearsals. The one with the number failAt fails.
	writes, failAt int
	// refuse refuses writes of a resource, rehearsals too.
	refuse string
}

var lists = map[schema.GroupVersionResource]string{
	{Group: "apps", Version: "v1", Resource: "deployments"}:                               "DeploymentList",
	{Version: "v1", Resource: "pods"}:                                                     "PodList",
	{Version: "v1", Resource: "configmaps"}:                                               "ConfigMapList",
	{Version: "v1", Resource: "namespaces"}:                                               "NamespaceList",
	{Version: "v1", Resource: "serviceaccounts"}:                                          "ServiceAccountList",
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}:                    "PodDisruptionBudgetList",
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: "CustomResourceDefinitionList",
	{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdclusters"}:     "EtcdClusterList",
	{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdbackups"}:      "EtcdBackupList",
	{Group: "etcd.database.coreos.com", Version: "v1beta2", Resource: "etcdrestores"}:     "EtcdRestoreList",
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}:                "RoleList",
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}:         "RoleBindingList",
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}:         "ClusterRoleList",
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}:  "ClusterRoleBindingList",
}

// newWorld has the fork's CRD and its clusters enc, mem and vol, and these objects in YAML.
func newWorld(t *testing.T, documents ...string) *world {
	t.Helper()
	var objects []runtime.Object
	for _, file := range []string{"../../../pkg/manifest/testdata/fork/etcdclusters.json", "testdata/fork-crd.json"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, string(content))
		if !o.IsList() {
			objects = append(objects, o)
			continue
		}
		if err := o.EachListItem(func(item runtime.Object) error { objects = append(objects, item); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, document := range documents {
		objects = append(objects, object(t, document))
	}
	w := &world{t: t, client: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)}
	w.client.PrependReactor("*", "*", w.act)
	return w
}

func object(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return o
}

// operator is a Deployment of an old operator, and its pod.
func operator(namespace, name, command string) []string {
	return []string{fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s, uid: old-%[2]s, labels: {fork: "yes"}}
spec:
  replicas: 1
  selector: {matchLabels: {name: %[2]s}}
  template:
    metadata: {labels: {name: %[2]s}}
    spec:
      imagePullSecrets: [{name: registry}]
      containers:
      - {name: operator, image: "example.com/etcd-operator:v0.9.4", command: [%[3]s]}
status: {availableReplicas: 1}`, namespace, name, command), fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[2]s-0, namespace: %[1]s, labels: {name: %[2]s}}`, namespace, name)}
}

func (w *world) act(action k8stesting.Action) (bool, runtime.Object, error) {
	if !slices.Contains([]string{"create", "update", "patch", "delete"}, action.GetVerb()) {
		return false, nil, nil
	}
	resource := action.GetResource().Resource
	if resource == w.refuse {
		return true, nil, errors.New("the user may not")
	}
	rehearsal, o := false, (*unstructured.Unstructured)(nil)
	switch a := action.(type) {
	case k8stesting.CreateActionImpl:
		rehearsal, o = len(a.CreateOptions.DryRun) > 0, a.Object.(*unstructured.Unstructured)
	case k8stesting.UpdateActionImpl:
		rehearsal, o = len(a.UpdateOptions.DryRun) > 0, a.Object.(*unstructured.Unstructured)
	case k8stesting.PatchActionImpl:
		rehearsal, o = len(a.PatchOptions.DryRun) > 0, w.get(resource, a.Name)
	}
	if rehearsal {
		return true, o, nil
	}
	if w.writes++; w.writes == w.failAt {
		return true, nil, errors.New("the connection broke")
	}
	if resource != "deployments" {
		return false, nil, nil
	}
	switch a := action.(type) {
	case k8stesting.PatchActionImpl:
		if strings.Contains(string(a.Patch), `"replicas":0`) {
			_ = w.client.Tracker().Delete(gvr("pods"), a.Namespace, a.Name+"-0")
		}
	case k8stesting.CreateActionImpl, k8stesting.UpdateActionImpl:
		w.start(o)
	}
	return false, nil, nil
}

// start plays the pod of a Deployment. One of this release answers for the clusters.
func (w *world) start(o *unstructured.Unstructured) {
	o.SetUID("new-" + o.GetUID())
	_ = unstructured.SetNestedField(o.Object, int64(1), "status", "availableReplicas")
	if o.GetName() != "etcd-operator" || o.GetLabels()["app.kubernetes.io/part-of"] == "" {
		return
	}
	if old, err := w.client.Tracker().Get(gvr("pods"), o.GetNamespace(), "etcd-operator-0"); err == nil {
		w.t.Errorf("the new operator starts beside %v", old)
	}
	for _, name := range w.names("etcdclusters") {
		c := w.get("etcdclusters", name)
		if scope := c.GetAnnotations()["etcd.database.coreos.com/scope"]; scope != "" && scope != "clusterwide" {
			continue
		}
		_ = unstructured.SetNestedField(c.Object, c.GetGeneration(), "status", "observedGeneration")
		if err := w.client.Tracker().Update(gvr("etcdclusters"), c, c.GetNamespace()); err != nil {
			w.t.Error(err)
		}
	}
}

func gvr(resource string) schema.GroupVersionResource {
	for known := range maps.Keys(lists) {
		if known.Resource == resource {
			return known
		}
	}
	panic(resource)
}

// clusterScoped are the resources without a namespace.
var clusterScoped = []string{"customresourcedefinitions", "clusterroles", "clusterrolebindings"}

func (w *world) get(resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	namespace := "default"
	if slices.Contains(clusterScoped, resource) {
		namespace = ""
	}
	o, err := w.client.Tracker().Get(gvr(resource), namespace, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return o.(*unstructured.Unstructured).DeepCopy()
}

// names are the objects of all namespaces.
func (w *world) names(resource string) []string {
	w.t.Helper()
	list, err := w.client.Tracker().List(gvr(resource), gvr(resource).GroupVersion().WithKind(strings.TrimSuffix(lists[gvr(resource)], "List")), "")
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	_ = list.(*unstructured.UnstructuredList).EachListItem(func(o runtime.Object) error {
		names = append(names, o.(*unstructured.Unstructured).GetName())
		return nil
	})
	slices.Sort(names)
	return names
}

// all is the content of the world, without what differs from run to run.
func (w *world) all() map[string]any {
	w.t.Helper()
	found := map[string]any{}
	for known := range lists {
		for _, name := range w.names(known.Resource) {
			o := w.get(known.Resource, name)
			unstructured.RemoveNestedField(o.Object, "metadata", "uid")
			unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
			found[known.Resource+"/"+name] = o.Object
		}
	}
	return found
}

func (w *world) move() *adopt.Move {
	m := adopt.New(w.client, "default")
	m.Say = func(format string, args ...any) { w.said = append(w.said, fmt.Sprintf(format, args...)) }
	m.Until = func(ctx context.Context, look func(context.Context) (string, bool, error)) error {
		state, done, err := look(ctx)
		if err == nil && !done {
			err = errors.New("not done: " + state)
		}
		return err
	}
	return m
}

func (w *world) plan(m *adopt.Move) *adopt.Plan {
	w.t.Helper()
	p, err := m.Plan(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}
