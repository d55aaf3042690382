// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	testingclock "k8s.io/utils/clock/testing"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// A cluster stayed Ready with a spec that nobody follows, and observedGeneration said that this was
// about that spec.
func TestWhatCannotBeReadIsNotReady(t *testing.T) {
	const (
		before, now = "2026-11-28T00:00:00Z", "2026-11-28T01:00:00Z"
		available   = `{"type": "Available", "status": "True", "reason": "Quorum", "lastUpdateTime": "` + before + `", "lastTransitionTime": "` + before + `"}`
	)
	for name, c := range map[string]struct{ conditions, want string }{
		"it was ready": {
			`[{"type": "Ready", "status": "True", "reason": "AsSpecified", "message": "3 of 3", "lastUpdateTime": "` + before + `", "lastTransitionTime": "` + before + `"}, ` + available + `,
			  {"type": "Stalled", "status": "False", "reason": "AsSpecified", "observedGeneration": 6, "lastTransitionTime": "` + before + `"}]`,
			`[{"type": "Ready", "status": "False", "reason": "SpecRefused", "message": "REASON", "lastUpdateTime": "` + now + `", "lastTransitionTime": "` + now + `"}, ` + available + `,
			  {"type": "Stalled", "status": "True", "reason": "SpecRefused", "message": "REASON", "observedGeneration": 7, "lastTransitionTime": "` + now + `"},
			  {"type": "Reconciling", "status": "False", "reason": "SpecRefused", "message": "", "lastTransitionTime": "` + now + `"}]`,
		},
		"it was stalled": {
			`[{"type": "Ready", "status": "False", "reason": "Paused", "message": "paused", "lastTransitionTime": "` + before + `"},
			  {"type": "Reconciling", "status": "False", "reason": "Paused", "message": "paused", "lastTransitionTime": "` + before + `"},
			  {"type": "Stalled", "status": "True", "reason": "Paused", "message": "paused", "lastTransitionTime": "` + before + `"}]`,
			`[{"type": "Ready", "status": "False", "reason": "SpecRefused", "message": "REASON", "lastTransitionTime": "` + before + `"},
			  {"type": "Reconciling", "status": "False", "reason": "SpecRefused", "message": "", "lastTransitionTime": "` + before + `"},
			  {"type": "Stalled", "status": "True", "reason": "SpecRefused", "message": "REASON", "lastTransitionTime": "` + before + `"}]`,
		},
		"the conditions can't be read": {
			`"none"`,
			`[{"type": "Ready", "status": "False", "reason": "SpecRefused", "message": "REASON", "lastTransitionTime": "` + now + `"},
			  {"type": "Reconciling", "status": "False", "reason": "SpecRefused", "message": "", "lastTransitionTime": "` + now + `"},
			  {"type": "Stalled", "status": "True", "reason": "SpecRefused", "message": "REASON", "lastTransitionTime": "` + now + `"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bad := &unstructured.Unstructured{}
			if err := bad.UnmarshalJSON([]byte(`{"apiVersion": "etcd.database.coreos.com/v1beta2", "kind": "EtcdCluster",
				"metadata": {"namespace": "ns", "name": "bad", "uid": "1", "generation": 7}, "spec": {"size": "three"}, "status": {"conditions": ` + c.conditions + `}}`)); err != nil {
				t.Fatal(err)
			}
			scheme := runtime.NewScheme()
			if err := api.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, now)
			if err != nil {
				t.Fatal(err)
			}
			source := &Source[*api.EtcdCluster]{
				Dynamic: fake.NewSimpleDynamicClient(scheme, bad), Resource: api.SchemeGroupVersion.WithResource(api.EtcdClusterResourcePlural),
				Kind: api.EtcdClusterResourceKind, New: func() *api.EtcdCluster { return &api.EtcdCluster{} },
				ReasonField: "reason", Clock: testingclock.NewFakePassiveClock(at),
			}
			obj, ok := source.decode(bad.DeepCopy()).(*unreadable)
			if !ok {
				t.Fatal("it can be read")
			}
			if err := source.tryWriteReason(t.Context(), obj, "REASON"); err != nil {
				t.Fatal(err)
			}
			live, err := source.Dynamic.Resource(source.Resource).Namespace("ns").Get(t.Context(), "bad", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := unstructured.NestedSlice(live.Object, "status", "conditions")
			if err != nil {
				t.Fatal(err)
			}
			gotText, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := parsed(t, string(gotText)), parsed(t, c.want); !reflect.DeepEqual(got, want) {
				t.Errorf("conditions %v\nwant %v", got, want)
			}
		})
	}
}

func parsed(t *testing.T, text string) (list []any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	return list
}
