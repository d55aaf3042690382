//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The five lines of a first manifest.
func TestFiveLineManifest(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	n.Shell(`kubectl apply -f - <<END
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: five}
spec:
  size: 3
END`)
	n.Adopt("five").WaitSettled()
}

// Bad input is refused at admission with a message that a person understands,
// and a healthy neighbour doesn't notice.
func TestBadSpecsAreRefused(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	neighbour := n.CreateObject(object("neighbour", 3, ""))
	before := neighbour.WaitSettled()
	writer := neighbour.StartWriter()
	clusters := dynamicClient(t, n)

	type fields = map[string]any
	cases := []struct {
		what     string
		metadata string
		spec     any
		words    []string
	}{
		{"size 0", "", fields{"size": 0}, []string{"spec.size", "greater than or equal to 1"}},
		{"size -1", "", fields{"size": -1}, []string{"spec.size", "greater than or equal to 1"}},
		{"size 8", "", fields{"size": 8}, []string{"spec.size", "less than or equal to 7"}},
		{"size 9", "", fields{"size": 9}, []string{"spec.size", "less than or equal to 7"}},
		{"size three", "", fields{"size": "three"}, []string{"spec.size", "integer"}},
		{"size 2.5", "", fields{"size": 2.5}, []string{"spec.size", "integer"}},
		{"size null", "", fields{"size": nil}, []string{"spec.size"}},
		{"no size", "", fields{}, []string{"spec.size", "Required"}},
		{"no spec", "", nil, []string{"spec"}},
		{"spec a list", "", []any{}, []string{"spec"}},
		{"version latest", "", fields{"size": 1, "version": "latest"}, []string{"spec.version", "semantic version", "3.6.16"}},
		{"version 3", "", fields{"size": 1, "version": "3"}, []string{"spec.version", "semantic version"}},
		{"version 3.6", "", fields{"size": 1, "version": "3.6"}, []string{"spec.version", "semantic version"}},
		{"version a number", "", fields{"size": 1, "version": 3.6}, []string{"spec.version", "string"}},
		{"repository with a tag", "", fields{"size": 1, "repository": "quay.io/coreos/etcd:v3.6.16"}, []string{"spec.repository", "without tag"}},
		{"label app", "", fields{"size": 1, "pod": fields{"labels": fields{"app": "mine"}}}, []string{"spec.pod.labels", "app"}},
		{"label etcd_node", "", fields{"size": 1, "pod": fields{"labels": fields{"etcd_node": "mine"}}}, []string{"spec.pod.labels", "etcd_"}},
		{"label etcd_other", "", fields{"size": 1, "pod": fields{"labels": fields{"etcd_other": "mine"}}}, []string{"spec.pod.labels", "etcd_"}},
		{"negative DNS timeout", "", fields{"size": 1, "pod": fields{"DNSTimeoutInSecond": -1}}, []string{"spec.pod.DNSTimeoutInSecond"}},
		{"name of 53 characters", strings.Repeat("a", 53), fields{"size": 1}, []string{"metadata.name", "52 characters"}},
		{"name with a dot", "a.b", fields{"size": 1}, []string{"metadata.name", "dot"}},
		{"name that starts with a digit", "1a", fields{"size": 1}, []string{"metadata.name", "letter"}},
	}
	for i, c := range cases {
		name := c.metadata
		if name == "" {
			name = fmt.Sprintf("bad-%d", i)
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta2.SchemeGroupVersion.String(), "kind": "EtcdCluster",
			"metadata": map[string]any{"name": name},
		}}
		if c.spec != nil {
			object.Object["spec"] = c.spec
		}
		_, err := clusters.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		switch {
		case err == nil:
			t.Errorf("%s: admitted", c.what)
		case !apierrors.IsInvalid(err):
			t.Errorf("%s: %v", c.what, err)
		default:
			t.Logf("%s: %v", c.what, err)
			for _, word := range c.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: the message lacks %q: %v", c.what, word, err)
				}
			}
		}
	}

	// An edit is judged as a creation is.
	for _, patch := range []string{`{"spec":{"size":0}}`, `{"spec":{"size":8}}`, `{"spec":{"version":"latest"}}`, `{"spec":{"pod":{"labels":{"app":"mine"}}}}`} {
		_, err := clusters.Patch(t.Context(), neighbour.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if !apierrors.IsInvalid(err) {
			t.Errorf("patch %s: %v", patch, err)
		}
	}

	// A name of 52 characters is the longest, and works.
	longest := n.CreateObject(object(strings.Repeat("a", 52), 1, ""))
	longest.WaitSettled()

	after := neighbour.WaitSettled()
	for i := range before {
		if before[i].ID != after[i].ID {
			t.Errorf("a member of the neighbour was replaced: %+v became %+v", before[i], after[i])
		}
	}
	neighbour.VerifyWrites(writer)
	if operator := n.Operator(); operator == nil || operator.Status.ContainerStatuses[0].RestartCount > 0 {
		t.Error("the operator did not stay up")
	}
}

// A field that has no effect is not in the schema: strict validation, which
// kubectl asks for, says so instead of dropping it silently.
func TestUnknownFieldIsTold(t *testing.T) {
	t.Parallel()
	n := harness.New(t)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1beta2.SchemeGroupVersion.String(), "kind": "EtcdCluster",
		"metadata": map[string]any{"name": "etcd"},
		"spec":     map[string]any{"size": 1, "sise": 3},
	}}
	_, err := dynamicClient(t, n).Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), "sise") {
		t.Errorf("a misspelt field was answered with: %v", err)
	}
}

func dynamicClient(t *testing.T, n *harness.Namespace) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(n.REST)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1beta2.SchemeGroupVersion.WithResource("etcdclusters")).Namespace(n.Name)
}
