// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// schemaCase is an entry of testdata/*.yaml; the file says what the fields mean.
type schemaCase struct {
	Name    string               `json:"name"`
	Cluster runtime.RawExtension `json:"cluster"`
	Refused []string             `json:"refused"`
	Unknown []string             `json:"unknown"`
}

func readCases(t *testing.T, path string) []schemaCase {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []schemaCase
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatalf("decode %s: %v", path, err)
	}
	return cases
}

func TestAPIServerWouldTakeTheCRD(t *testing.T) {
	definition := internalCRD(t)
	// The API server sets what it stores; without it the validation complains.
	definition.Status.StoredVersions = []string{v1beta2.SchemeGroupVersion.Version}
	if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), definition); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if got := definition.Name; got != v1beta2.EtcdClusterCRDName {
		t.Errorf("name %q, want %q", got, v1beta2.EtcdClusterCRDName)
	}
	if got := definition.Spec.Names.Kind; got != v1beta2.EtcdClusterResourceKind {
		t.Errorf("kind %q, want %q", got, v1beta2.EtcdClusterResourceKind)
	}
}

func TestEachCallReturnsACRDOfItsOwn(t *testing.T) {
	first, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	first.Spec.Names.Plural = "changed"
	second, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	if second.Spec.Names.Plural != v1beta2.EtcdClusterResourcePlural {
		t.Errorf("a change to one returned CRD shows in the next: %q", second.Spec.Names.Plural)
	}
}

func TestSchemaAnswersEachCase(t *testing.T) {
	server := newAPIServer(t)
	for _, c := range readCases(t, "testdata/etcdcluster.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			errs, unknown := server.create(t, c.Cluster.Raw)
			checkAnswer(t, errs, c.Refused)
			if !slices.Equal(unknown, c.Unknown) {
				t.Errorf("unknown fields %q, want %q", unknown, c.Unknown)
			}
		})
	}
}

func TestGoValidationAnswersAsTheSchema(t *testing.T) {
	for _, c := range readCases(t, "testdata/etcdcluster.yaml") {
		t.Run(c.Name, func(t *testing.T) {
			cluster := &v1beta2.EtcdCluster{}
			strict, err := sigsjson.UnmarshalStrict(c.Cluster.Raw, cluster)
			if err != nil {
				// The decoder refuses wrong types in words of its own.
				if len(c.Refused) == 0 {
					t.Fatalf("the Go types don't hold what the schema accepts: %v", err)
				}
				return
			}
			if len(strict) != len(c.Unknown) {
				t.Errorf("the Go types don't know %v, the schema does not know %q", strict, c.Unknown)
			}
			var errs []string
			for _, err := range v1beta2.ValidateEtcdCluster(cluster) {
				errs = append(errs, err.Error())
			}
			checkAnswer(t, errs, c.Refused)
		})
	}
}

func checkAnswer(t *testing.T, errs, refused []string) {
	t.Helper()
	answer := strings.Join(errs, "\n")
	if len(refused) == 0 && answer != "" {
		t.Errorf("refused: %s", answer)
	}
	if len(refused) > 0 && answer == "" {
		t.Errorf("accepted, want it refused with %q", refused)
	}
	for _, text := range refused {
		if answer != "" && !strings.Contains(answer, text) {
			t.Errorf("the answer lacks %q: %s", text, answer)
		}
	}
}

func internalCRD(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	published, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(published)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&published.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(published, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

// apiServer does to an object what an API server does on create: prune unknown
// fields and nulls, validate by schema, and by CEL. A real one skips CEL after some errors
// of the schema, which leaves out answers and adds none.
type apiServer struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	definition := internalCRD(t)
	schema := definition.Spec.Validation
	if schema == nil {
		schema = definition.Spec.Versions[0].Schema
	}
	structural, err := structuralschema.NewStructural(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &apiServer{
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

func (s *apiServer) create(t *testing.T, text []byte) (errs, unknown []string) {
	t.Helper()
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	object["apiVersion"] = v1beta2.SchemeGroupVersion.String()
	object["kind"] = v1beta2.EtcdClusterResourceKind
	unknown = pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)

	found := validation.ValidateCustomResource(nil, object, s.schema)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	ruled, _ := s.rules.Validate(t.Context(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	for _, err := range append(found, ruled...) {
		errs = append(errs, err.Error())
	}
	return errs, unknown
}
