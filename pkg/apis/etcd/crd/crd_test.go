// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	sigsjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/etcd"
)

// kind is a kind of ours, and where its rules are.
type kind struct {
	name, plural, crdName string
	cases                 string
	crd                   func() (*apiextensionsv1.CustomResourceDefinition, error)
	// validate reads an object into the Go types and puts it to the rules that are
	// in Go. strict are the fields that the types don't know.
	validate func(text []byte) (strict []error, errs field.ErrorList, err error)
	// rules is a number of CEL rules that it certainly has.
	rules int
}

var kinds = []kind{
	{
		v1beta2.EtcdClusterResourceKind, v1beta2.EtcdClusterResourcePlural, v1beta2.EtcdClusterCRDName, "testdata/etcdcluster.yaml", crd.EtcdCluster,
		func(text []byte) ([]error, field.ErrorList, error) {
			obj := &v1beta2.EtcdCluster{}
			strict, err := sigsjson.UnmarshalStrict(text, obj)
			return strict, v1beta2.ValidateEtcdCluster(obj), err
		}, 100,
	},
	{
		v1beta2.EtcdBackupResourceKind, v1beta2.EtcdBackupResourcePlural, v1beta2.EtcdBackupCRDName, "testdata/etcdbackup.yaml", crd.EtcdBackup,
		func(text []byte) ([]error, field.ErrorList, error) {
			obj := &v1beta2.EtcdBackup{}
			strict, err := sigsjson.UnmarshalStrict(text, obj)
			return strict, v1beta2.ValidateEtcdBackup(obj), err
		}, 10,
	},
	{
		v1beta2.EtcdRestoreResourceKind, v1beta2.EtcdRestoreResourcePlural, v1beta2.EtcdRestoreCRDName, "testdata/etcdrestore.yaml", crd.EtcdRestore,
		func(text []byte) ([]error, field.ErrorList, error) {
			obj := &v1beta2.EtcdRestore{}
			strict, err := sigsjson.UnmarshalStrict(text, obj)
			return strict, v1beta2.ValidateEtcdRestore(obj), err
		}, 10,
	},
}

var etcdCluster = kinds[0]

// eachKind runs a test for every kind.
func eachKind(t *testing.T, test func(t *testing.T, k kind)) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

// schemaCase is an entry of testdata/*.yaml; the files say what the fields mean.
type schemaCase struct {
	Name       string               `json:"name"`
	Old        runtime.RawExtension `json:"old"`
	Object     runtime.RawExtension `json:"object"`
	Cluster    runtime.RawExtension `json:"cluster"` // the object, if it is one
	Refused    []string             `json:"refused"`
	Unknown    []string             `json:"unknown"`
	SchemaOnly bool                 `json:"schemaOnly"`
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
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", path)
	}
	for i := range cases {
		if c := &cases[i]; c.Object.Raw == nil {
			c.Object = c.Cluster
		}
	}
	return cases
}

func TestAPIServerWouldTakeTheCRD(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		definition := internalCRD(t, k)
		// The API server sets what it stores; without it the validation complains.
		definition.Status.StoredVersions = []string{v1beta2.SchemeGroupVersion.Version}
		if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), definition); len(errs) > 0 {
			t.Fatal(errs.ToAggregate())
		}
		if got := definition.Name; got != k.crdName {
			t.Errorf("name %q, want %q", got, k.crdName)
		}
		if got := definition.Spec.Names.Kind; got != k.name {
			t.Errorf("kind %q, want %q", got, k.name)
		}
	})
}

// kubectl apply leaves a field alone that the file does not name. The CRDs that v0.9.4 registered set
// preserveUnknownFields, and the API server refuses defaults in such a CRD. So our files name the field.
func TestOurCRDAppliesOverThatOfV094(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		live := readFile(t, "testdata/v0.9.4/"+k.plural+".yaml")
		applied, err := jsonpatch.MergePatch(live, readFile(t, "etcd.database.coreos.com_"+k.plural+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		result := decodeCRD(t, applied)
		if loose := result.Spec.PreserveUnknownFields; loose == nil || *loose {
			t.Error("the CRD still preserves unknown fields, so the API server prunes nothing")
		}
		errs := crdvalidation.ValidateCustomResourceDefinitionUpdate(t.Context(), result, decodeCRD(t, live))
		if len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
	})
}

// readFile returns a YAML file as JSON.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func decodeCRD(t *testing.T, document []byte) *apiextensions.CustomResourceDefinition {
	t.Helper()
	published := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(document, published); err != nil {
		t.Fatal(err)
	}
	return internal(t, published)
}

func TestEachCallReturnsACRDOfItsOwn(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		first, err := k.crd()
		if err != nil {
			t.Fatal(err)
		}
		first.Spec.Names.Plural = "changed"
		second, err := k.crd()
		if err != nil {
			t.Fatal(err)
		}
		if second.Spec.Names.Plural != k.plural {
			t.Errorf("a change to one returned CRD shows in the next: %q", second.Spec.Names.Plural)
		}
	})
}

func TestSchemaAnswersEachCase(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		server := newAPIServer(t, k)
		for _, c := range readCases(t, k.cases) {
			t.Run(c.Name, func(t *testing.T) {
				errs, unknown := server.admit(t, c.Object.Raw, c.Old.Raw)
				checkAnswer(t, errs, c.Refused)
				if !slices.Equal(unknown, c.Unknown) {
					t.Errorf("unknown fields %q, want %q", unknown, c.Unknown)
				}
			})
		}
	})
}

func TestGoValidationAnswersAsTheSchema(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		for _, c := range readCases(t, k.cases) {
			if c.SchemaOnly {
				continue
			}
			t.Run(c.Name, func(t *testing.T) {
				strict, found, err := k.validate(c.Object.Raw)
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
				for _, err := range found {
					errs = append(errs, err.Error())
				}
				checkAnswer(t, errs, c.Refused)
			})
		}
	})
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

func internalCRD(t *testing.T, k kind) *apiextensions.CustomResourceDefinition {
	t.Helper()
	published, err := k.crd()
	if err != nil {
		t.Fatal(err)
	}
	return internal(t, published)
}

func internal(t *testing.T, published *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(published)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&published.Spec)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(published, internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

// apiServer does to an object what an API server does on create and update: prune
// unknown fields and nulls, set defaults, validate by schema, and by CEL. A real
// one skips CEL after some errors of the schema, which leaves out answers and adds
// none.
type apiServer struct {
	kind       string
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

func newAPIServer(t *testing.T, k kind) *apiServer {
	t.Helper()
	definition := internalCRD(t, k)
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
		kind:       k.name,
		structural: structural,
		schema:     validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// admit answers an object that is created, or that an old one is changed to.
func (s *apiServer) admit(t *testing.T, text, old []byte) (errs, unknown []string) {
	t.Helper()
	object, unknown := s.read(t, text)
	found := validation.ValidateCustomResource(nil, object, s.schema)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	var before any
	if old != nil {
		was, _ := s.read(t, old)
		// Only a status of its own is written by its own request.
		object["status"] = was["status"]
		before = was
	}
	ruled, _ := s.rules.Validate(t.Context(), nil, s.structural, object, before, celconfig.RuntimeCELCostBudget)
	for _, err := range append(found, ruled...) {
		errs = append(errs, err.Error())
	}
	return errs, unknown
}

func (s *apiServer) read(t *testing.T, text []byte) (object map[string]any, unknown []string) {
	t.Helper()
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	object["apiVersion"] = v1beta2.SchemeGroupVersion.String()
	object["kind"] = s.kind
	unknown = pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	return object, unknown
}

// The rules must compile where the operator runs, not only on the newest API
// server.
func TestRulesAreKnownSinceKubernetes130(t *testing.T) {
	eachKind(t, rulesAreKnown)
}

func rulesAreKnown(t *testing.T, k kind) {
	server := newAPIServer(t, k)
	oldest := environment.MustBaseEnvSet(version.MajorMinor(1, 30))
	count := 0
	var visit func(path string, s *structuralschema.Structural, root bool)
	visit = func(path string, s *structuralschema.Structural, root bool) {
		if len(s.XValidations) > 0 {
			results, err := cel.Compile(s, model.SchemaDeclType(s, root), celconfig.PerCallLimit, oldest, cel.NewExpressionsEnvLoader())
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			for i, r := range results {
				count++
				if r.Error != nil {
					t.Errorf("%s: %s: %v", path, s.XValidations[i].Rule, r.Error)
				}
				if r.MessageExpressionError != nil {
					t.Errorf("%s: %s: %v", path, s.XValidations[i].MessageExpression, r.MessageExpressionError)
				}
			}
		}
		for name, p := range s.Properties {
			visit(path+"."+name, &p, false)
		}
		if s.Items != nil {
			visit(path+"[]", s.Items, false)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			visit(path+"{}", s.AdditionalProperties.Structural, false)
		}
	}
	visit("", server.structural, true)
	if count < k.rules {
		t.Errorf("only %d rules were compiled", count)
	}
}

// kubectl apply keeps the whole object in an annotation.
func TestKubectlCanApplyTheCRD(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		definition, err := k.crd()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		const limit = 256 * 1024
		if len(text) > limit*3/4 {
			t.Errorf("the CRD has %d bytes; kubectl apply fails from %d on", len(text), limit)
		}
	})
}

// Changes of the version are judged twice: at admission by the schema, and by the
// operator, which goes by the same words of etcd's own documentation.
func TestSchemaJudgesVersionsAsTheOperatorDoes(t *testing.T) {
	server := newAPIServer(t, etcdCluster)
	versions := []string{
		"3.3.27", "3.4.37", "v3.5.19", "3.5.20-rc.1", "3.5.35", "3.6.0-rc.1", "3.6.10", "v3.6.11", "3.7.3", "3.8.0", "3.10.1",
	}
	admitted, refused := 0, 0
	for _, running := range versions {
		for _, first := range []string{"", "3.4.37", "3.5.35"} {
			for _, asked := range versions {
				was := fmt.Sprintf(`{"metadata":{"name":"etcd"},"spec":{"size":3,"version":"3.9.9"},"status":{"phase":"Running","currentVersion":%q,"initialVersion":%q}}`,
					strings.TrimPrefix(running, "v"), first)
				is := fmt.Sprintf(`{"metadata":{"name":"etcd"},"spec":{"size":3,"version":%q}}`, asked)
				errs, _ := server.admit(t, []byte(is), []byte(was))
				want := etcd.CheckChange(mustParse(t, running), mustParse(t, asked))
				if want == nil && first != "" {
					want = etcd.CheckOrigin(mustParse(t, first), mustParse(t, asked))
				}
				if (want == nil) != (len(errs) == 0) {
					t.Errorf("a cluster of %s (first %q) that is set to %s: the schema says %q, the operator %v", running, first, asked, errs, want)
				}
				if want == nil {
					admitted++
				} else {
					refused++
				}
			}
		}
	}
	if admitted < 50 || refused < 50 {
		t.Errorf("%d changes were admitted and %d refused: too few to compare", admitted, refused)
	}
}

func mustParse(t *testing.T, v string) etcd.Version {
	t.Helper()
	parsed, err := etcd.ParseVersion(v)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
