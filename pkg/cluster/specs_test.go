// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
)

// specs generates EtcdClusters. Each field of the schema may have a valid value, one at the
// edge, or an invalid one.
type specs struct {
	rng    *rand.Rand
	schema apiextensionsv1.JSONSchemaProps // of the spec
	values map[string][]any                // testdata/values.yaml
	tidy   bool                            // nothing but what should fit
}

func newSpecs(t testing.TB, seed uint64) *specs {
	t.Helper()
	definition, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &specs{
		rng:    rand.New(rand.NewPCG(seed, 0)),
		schema: definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"],
	}
	text = repeated.ReplaceAllFunc(text, func(m []byte) []byte {
		parts := repeated.FindSubmatch(m)
		times, _ := strconv.Atoi(string(parts[2])) // digits, as matched
		return bytes.Repeat(parts[1], times)
	})
	if err := yaml.UnmarshalStrict(text, &s.values); err != nil {
		t.Fatal(err)
	}
	return s
}

var repeated = regexp.MustCompile(`\{([^{*]+)\*([0-9]+)\}`)

// next returns a spec. It fills few fields, but deeply. The API server would refuse a spec with
// everything in it for some of it, which hides the rest.
func (s *specs) next() map[string]any {
	s.tidy = s.rng.IntN(2) == 0
	spec := map[string]any{"size": 1 + s.rng.IntN(7)}
	pod := s.schema.Properties["pod"]
	for range 1 + s.rng.IntN(4) {
		if s.rng.IntN(4) == 0 {
			name := s.pick(slices.Sorted(maps.Keys(s.schema.Properties)))
			if name != "pod" {
				spec[name] = s.value(name, s.schema.Properties[name])
			}
			continue
		}
		policy, ok := spec["pod"].(map[string]any)
		if !ok {
			policy = map[string]any{}
			spec["pod"] = policy
		}
		name := s.pick(slices.Sorted(maps.Keys(pod.Properties)))
		policy[name] = s.value("pod."+name, pod.Properties[name])
	}
	return spec
}

// value makes up what may stand at a path of the spec.
func (s *specs) value(path string, schema apiextensionsv1.JSONSchemaProps) any {
	if !s.tidy && s.rng.IntN(60) == 0 {
		return s.anything()
	}
	if pool := s.pool(path); pool != nil && (s.tidy || s.rng.IntN(10) > 0) {
		if s.tidy {
			pool = pool[:(len(pool)+2)/3] // the tidy values come first
		}
		return s.one(pool)
	}
	if len(schema.Enum) > 0 && (s.tidy || s.rng.IntN(20) > 0) {
		var v any
		_ = json.Unmarshal(schema.Enum[s.rng.IntN(len(schema.Enum))].Raw, &v) // as the generator wrote it
		return v
	}
	switch {
	case schema.XIntOrString:
		return s.one(s.values["quantities"][:s.some("quantities")])
	case schema.Type == "object" && schema.AdditionalProperties != nil:
		return s.object(path, *schema.AdditionalProperties.Schema)
	case schema.Type == "object":
		return s.properties(path, schema)
	case schema.Type == "array":
		items := []any{}
		for range []int{0, 1, 1, 1, 2, 2, 3}[s.rng.IntN(7)] {
			items = append(items, s.value(path+"[]", *schema.Items.Schema))
		}
		return items
	case schema.Type == "boolean":
		return s.rng.IntN(2) == 0
	case schema.Type == "integer":
		return s.one(s.values["integers"][:s.some("integers")])
	default:
		return s.one(s.values["strings"][:s.some("strings")])
	}
}

// some is how many of a pool's values are to choose from.
func (s *specs) some(pool string) int {
	if s.tidy {
		return (len(s.values[pool]) + 2) / 3
	}
	return len(s.values[pool])
}

// properties sets what is required, and some of the rest.
func (s *specs) properties(path string, schema apiextensionsv1.JSONSchemaProps) any {
	object := map[string]any{}
	names := slices.Sorted(maps.Keys(schema.Properties))
	if strings.HasSuffix(path, ".valueFrom") && s.rng.IntN(10) > 0 {
		name := s.pick(names)
		return map[string]any{name: s.value(path+"."+name, schema.Properties[name])}
	}
	for _, name := range names {
		wanted := s.rng.IntN(3) == 0
		if slices.Contains(schema.Required, name) {
			wanted = s.tidy || s.rng.IntN(40) > 0
		}
		if wanted {
			object[name] = s.value(path+"."+name, schema.Properties[name])
		}
	}
	return object
}

// object is a map from keys of the user's choice.
func (s *specs) object(path string, values apiextensionsv1.JSONSchemaProps) any {
	object := map[string]any{}
	for range s.rng.IntN(4) {
		if key, ok := s.one(s.keys(path)).(string); ok {
			object[key] = s.value(path+"{}", values)
		}
	}
	if strings.HasSuffix(path, "ClaimSpec.resources.requests") && s.rng.IntN(10) > 0 {
		return map[string]any{"storage": s.value(path+"{}", values)}
	}
	return object
}

func (s *specs) keys(path string) []any {
	if strings.HasSuffix(path, ".limits") || strings.HasSuffix(path, ".requests") {
		return s.values["resources"][:s.some("resources")]
	}
	return s.values["keys"][:s.some("keys")]
}

// pool returns the values for a place: those with the longest name that the
// path ends in.
func (s *specs) pool(path string) []any {
	best := ""
	for name := range s.values {
		suffix, isPath := strings.CutPrefix(name, "*")
		if isPath && strings.HasSuffix(path, suffix) && len(name) > len(best) {
			best = name
		}
	}
	return s.values[best]
}

// anything is a value that fits nowhere in particular.
func (s *specs) anything() any {
	switch s.rng.IntN(4) {
	case 0:
		return nil
	case 1:
		return s.one(s.values["integers"])
	case 2:
		return s.one([]any{true, []any{}, map[string]any{}, []any{nil}, map[string]any{"a": nil}, 2.5, "", []any{""}})
	default:
		return s.one(s.values["strings"])
	}
}

func (s *specs) pick(from []string) string { return from[s.rng.IntN(len(from))] }

func (s *specs) one(from []any) any { return from[s.rng.IntN(len(from))] }
