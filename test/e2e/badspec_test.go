//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// badSpec is an entry of testdata/badspecs.yaml, which explains the fields.
type badSpec struct {
	What    string   `json:"what"`
	Name    string   `json:"name"`
	Spec    any      `json:"spec"`
	Edit    any      `json:"edit"`
	Refused []string `json:"refused"`
	Told    []string `json:"told"`
}

// The answer to bad input is a message that a person understands: at admission if possible,
// otherwise in the status or an event. A healthy neighbour is unaffected.
func TestBadSpecs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/badspecs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []badSpec
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("the table has %d cases", len(cases))
	}
	n := harness.New(t)
	neighbour := n.CreateObject(object("neighbour", 1, etcd36))
	before := neighbour.WaitSettled()
	podsBefore := uids(neighbour.Pods())
	writer := neighbour.StartWriter()
	clusters := dynamicClient(t, n)

	odd := map[string]badSpec{}
	for i, c := range cases {
		if len(c.Refused)+len(c.Told) == 0 {
			t.Errorf("%s: the table does not say what is to be answered", c.What)
		}
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("bad-%d", i)
		}
		var err error
		if c.Edit != nil {
			var patch []byte
			if patch, err = json.Marshal(map[string]any{"spec": c.Edit}); err != nil {
				t.Fatal(err)
			}
			_, err = clusters.Patch(t.Context(), neighbour.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict})
		} else {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1beta2.SchemeGroupVersion.String(), "kind": v1beta2.EtcdClusterResourceKind,
				"metadata": map[string]any{"name": name},
			}}
			if c.Spec != nil {
				object.Object["spec"] = c.Spec
			}
			_, err = clusters.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		}
		switch {
		case len(c.Refused) == 0 && err != nil:
			t.Errorf("%s: refused: %v", c.What, err)
		case len(c.Refused) == 0:
			odd[name] = c
		case err == nil:
			t.Errorf("%s: admitted", c.What)
		case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
			t.Errorf("%s: %v", c.What, err)
		default:
			t.Logf("%s: %v", c.What, err)
			for _, word := range c.Refused {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%s: the message lacks %q: %v", c.What, word, err)
				}
			}
		}
	}

	// 52 characters is the longest valid name.
	longest := n.CreateObject(object(strings.Repeat("a", 52), 1, ""))
	longest.WaitSettled()

	for name, c := range odd {
		cluster := n.Adopt(name)
		harness.Wait(t, fmt.Sprintf("%s: %q in status or events", c.What, c.Told), harness.Settle, func(context.Context) error {
			told := whatIsTold(cluster)
			for _, word := range c.Told {
				if !strings.Contains(told, word) {
					return fmt.Errorf("the description lacks %q: %s", word, told)
				}
			}
			return nil
		})
	}

	after := neighbour.WaitSettled()
	for i := range before {
		if before[i].ID != after[i].ID {
			t.Errorf("a member of the neighbour was replaced: %+v became %+v", before[i], after[i])
		}
	}
	if podsAfter := uids(neighbour.Pods()); !slices.Equal(podsBefore, podsAfter) {
		t.Errorf("the neighbour's pods were %q and are %q", podsBefore, podsAfter)
	}
	neighbour.VerifyWrites(writer)
	n.WaitOperator() // the end of each test checks that it stayed up
}

// whatIsTold is what a user sees of a cluster with kubectl describe.
func whatIsTold(c *harness.Cluster) string {
	var lines []string
	if status, err := json.Marshal(c.Status()); err == nil {
		lines = append(lines, string(status))
	}
	for _, event := range c.Events() {
		if event.Type == corev1.EventTypeWarning {
			lines = append(lines, event.Reason+": "+event.Message)
		}
	}
	return strings.Join(lines, "\n")
}

func uids(pods []*corev1.Pod) []string {
	var list []string
	for _, pod := range pods {
		list = append(list, pod.Name+" "+string(pod.UID))
	}
	slices.Sort(list)
	return list
}

func dynamicClient(t *testing.T, n *harness.Namespace) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(n.REST)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(v1beta2.SchemeGroupVersion.WithResource("etcdclusters")).Namespace(n.Name)
}
