// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta2_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

func TestEffectiveVersionHasNoLeadingV(t *testing.T) {
	for version, want := range map[string]string{
		"":                 v1beta2.DefaultVersion,
		"3.5.35":           "3.5.35",
		"v3.5.35":          "3.5.35",
		"3.7.0-rc.1":       "3.7.0-rc.1",
		"v3.5.35@sha256:a": "3.5.35",
	} {
		spec := v1beta2.ClusterSpec{Version: version}
		if got := spec.EffectiveVersion(); got != want {
			t.Errorf("version %q: %q, want %q", version, got, want)
		}
		if spec.Version != version {
			t.Errorf("version %q was written back as %q", version, spec.Version)
		}
	}
}

func TestEffectiveRepositoryFallsBackToTheDefault(t *testing.T) {
	for repository, want := range map[string]string{
		"":                          "quay.io/coreos/etcd",
		"registry.example.com/etcd": "registry.example.com/etcd",
	} {
		spec := v1beta2.ClusterSpec{Repository: repository}
		if got := spec.EffectiveRepository(); got != want {
			t.Errorf("repository %q: %q, want %q", repository, got, want)
		}
	}
}

// The fork has it below pod.
func TestThePriorityClassMayStandAtTwoPlaces(t *testing.T) {
	for _, c := range []struct{ top, pod, want string }{
		{"", "", ""}, {"a", "", "a"}, {"", "b", "b"}, {"a", "a", "a"}, {"a", "b", "a"},
	} {
		obj := v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Size: 3, PriorityClassName: c.top, Pod: &v1beta2.PodPolicy{PriorityClassName: c.pod}}}
		if got := obj.Spec.EffectivePriorityClass(); got != c.want {
			t.Errorf("%q and below pod %q: %q, want %q", c.top, c.pod, got, c.want)
		}
		if warned, two := len(v1beta2.Warnings(&obj)) > 0, c.top == "a" && c.pod == "b"; warned != two {
			t.Errorf("%q and below pod %q: warns: %t", c.top, c.pod, warned)
		}
	}
	if got := (&v1beta2.ClusterSpec{}).EffectivePriorityClass(); got != "" {
		t.Errorf("without pod: %q", got)
	}
}

func TestEffectiveDNSTimeout(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *v1beta2.PodPolicy
		want time.Duration
	}{
		{"no pod policy", nil, 2 * time.Minute},
		{"unset", &v1beta2.PodPolicy{}, 2 * time.Minute},
		{"no bound", &v1beta2.PodPolicy{DNSTimeoutInSecond: ptr.To[int64](0)}, 0},
		{"half a minute", &v1beta2.PodPolicy{DNSTimeoutInSecond: ptr.To[int64](30)}, 30 * time.Second},
	} {
		spec := v1beta2.ClusterSpec{Pod: c.pod}
		if got := spec.EffectiveDNSTimeout(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}

	longest := v1beta2.ClusterSpec{Pod: &v1beta2.PodPolicy{DNSTimeoutInSecond: ptr.To[int64](math.MaxInt64)}}
	const century = 100 * 365 * 24 * time.Hour
	if got := longest.EffectiveDNSTimeout(); got < century {
		t.Errorf("the largest timeout is %v, and less than a century", got)
	}
}

func TestFieldDocsNameTheDefaults(t *testing.T) {
	definition, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for _, c := range []struct{ description, want string }{
		{spec["version"].Description, "Default: " + v1beta2.DefaultVersion + "."},
		{spec["repository"].Description, "Default: " + v1beta2.DefaultRepository + "."},
		{spec["pod"].Properties["DNSTimeoutInSecond"].Description, fmt.Sprintf("Default: %d.", v1beta2.DefaultDNSTimeout/time.Second)},
		{spec["recovery"].Properties["patienceInSecond"].Description, fmt.Sprintf("Default: %d.", v1beta2.DefaultRecoveryPatience/time.Second)},
		{spec["recovery"].Properties["maxLostInSecond"].Description, fmt.Sprintf("Default: %d.", v1beta2.DefaultMaxLost/time.Second)},
		{spec["recovery"].Properties["patienceInSecond"].Description, fmt.Sprintf("At most %.0f.", *spec["recovery"].Properties["patienceInSecond"].Maximum)},
		{spec["recovery"].Properties["maxLostInSecond"].Description, fmt.Sprintf("At most %.0f.", *spec["recovery"].Properties["maxLostInSecond"].Maximum)},
	} {
		if !strings.Contains(c.description, c.want) {
			t.Errorf("the field's comment does not say %q: %s", c.want, c.description)
		}
	}
}

func TestEvenSizesWarn(t *testing.T) {
	for size, want := range map[int]string{
		1: "", 3: "", 5: "", 7: "",
		2: "prefer 1 or 3", 4: "prefer 3 or 5", 6: "prefer 5 or 7",
		// Refused elsewhere: a warning besides would only distract.
		0: "", 8: "", -2: "",
	} {
		got := v1beta2.Warnings(&v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Size: size}})
		switch {
		case want == "" && len(got) > 0:
			t.Errorf("size %d warns: %q", size, got)
		case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
			t.Errorf("size %d: %q, want one warning with %q", size, got, want)
		}
	}
}

func TestSchemeKnowsTheKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{v1beta2.EtcdClusterResourceKind, v1beta2.EtcdBackupResourceKind, v1beta2.EtcdRestoreResourceKind} {
		for _, kind := range []string{kind, kind + "List"} {
			if gvk := v1beta2.SchemeGroupVersion.WithKind(kind); !scheme.Recognizes(gvk) {
				t.Errorf("the scheme does not know %s", gvk)
			}
		}
	}
}

// No constraints and none said are different things, so a client that writes an
// object back must not make one of the other.
func TestAnEmptyListOfSpreadConstraintsStaysEmpty(t *testing.T) {
	for given, want := range map[string]string{
		`{"topologySpreadConstraints":[]}`:   `{"topologySpreadConstraints":[]`,
		`{"topologySpreadConstraints":null}`: `{"resources"`,
		`{}`:                                 `{"resources"`,
	} {
		var p v1beta2.PodPolicy
		if err := json.Unmarshal([]byte(given), &p); err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(p.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(written), want) {
			t.Errorf("%s is written as %s", given, written)
		}
	}
}

func TestPodPoliciesThatAreSeldomWantedWarn(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  v1beta2.PodPolicy
		want string
	}{
		{"nothing special", v1beta2.PodPolicy{}, ""},
		{"antiAffinity", v1beta2.PodPolicy{AntiAffinity: true}, "deprecated"},
		{"antiAffinity beside affinity", v1beta2.PodPolicy{AntiAffinity: true, Affinity: &corev1.Affinity{}}, "ignored"},
		{"tmpfs", v1beta2.PodPolicy{Tmpfs: true}, "in memory"},
	} {
		got := v1beta2.Warnings(&v1beta2.EtcdCluster{Spec: v1beta2.ClusterSpec{Size: 3, Pod: &c.pod}})
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s warns: %q", c.name, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s: %q, want one warning with %q", c.name, got, c.want)
		}
	}
}
