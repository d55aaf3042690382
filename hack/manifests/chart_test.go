// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// release is the namespace of the releases in these tests.
const release = "databases"

// renderIn returns what `helm template` prints for values, without the notes. The API server has
// the given API versions besides those of Kubernetes.
func renderIn(t *testing.T, namespace, values string, apiVersions ...string) string {
	t.Helper()
	text, err := tryRender(namespace, values, apiVersions...)
	if err != nil {
		t.Fatalf("render the chart with\n%s\n%v", values, err)
	}
	return text
}

func tryRender(namespace, values string, apiVersions ...string) (string, error) {
	chart, err := loader.Load(root + "/charts/etcd-operator")
	if err != nil {
		return "", err
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return "", fmt.Errorf("the values: %w", err)
	}
	options := common.ReleaseOptions{Name: "etcd", Namespace: namespace, Revision: 1, IsInstall: true}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), apiVersions...)
	all, err := util.ToRenderValues(chart, given, options, capabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			text.WriteString("\n---\n" + files[name])
		}
	}
	return text.String(), nil
}

func TestHelmKeepsTheCRDs(t *testing.T) {
	for _, values := range []string{"", "crds: none"} {
		if text := renderIn(t, release, values); strings.Contains(text, "kind: CustomResourceDefinition\n") {
			t.Errorf("with the values %q, the release has CRDs", values)
		}
	}
	text := renderIn(t, release, "crds: install")
	kept := strings.Count(text, "\n    helm.sh/resource-policy: keep\n")
	if crds := strings.Count(text, "\nkind: CustomResourceDefinition\n"); crds != len(operators) || kept != crds {
		t.Errorf("%d CRDs, of which Helm keeps %d, want %d", crds, kept, len(operators))
	}
}

// Kubernetes deletes all objects with their CRD or their namespace, and the backups with their claim. Flux
// and Argo CD prune what leaves the manifests, and Argo CD does not heed Helm's annotation then.
func TestNothingPrunesWhatHoldsTheClusters(t *testing.T) {
	crds := len(operators)
	for from, c := range map[string]struct {
		text string
		want int
	}{
		"the chart":                                {renderIn(t, release, "crds: install"), crds},
		"deploy/install.yaml":                      {read(t, "deploy/install.yaml"), crds},
		"deploy/install-cluster-wide.yaml":         {read(t, "deploy/install-cluster-wide.yaml"), crds + 1},
		"deploy/namespaced-with-volume":            {overlay(t, "resources: [DEPLOY/namespaced-with-volume]"), crds + 1},
		"example/etcd-backup-operator/volume.yaml": {read(t, "example/etcd-backup-operator/volume.yaml"), 1},
	} {
		found := 0
		for name, object := range parse(t, c.text, "") {
			if kind := object["kind"]; kind != "CustomResourceDefinition" && kind != "Namespace" && kind != "PersistentVolumeClaim" {
				continue
			}
			found++
			annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations["kustomize.toolkit.fluxcd.io/prune"] != "disabled" || annotations["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" {
				t.Errorf("%s: %s has the annotations %v", from, name, annotations)
			}
		}
		if found != c.want {
			t.Errorf("%s has %d such objects, want %d", from, found, c.want)
		}
	}
}

// OpenShift chooses the users of pods and the groups of volumes, and refuses others.
func TestOnOpenShiftTheChartNamesNoUser(t *testing.T) {
	const values = "backupVolume: {claimName: etcd-backups}"
	if text := renderIn(t, release, values); strings.Count(text, "fsGroup: 65532\n") != 2 {
		t.Errorf("elsewhere, the volume of the backups has no group:\n%s", text)
	}
	text := renderIn(t, release, values, "security.openshift.io/v1")
	for _, field := range []string{"fsGroup", "runAsUser", "runAsGroup"} {
		if strings.Contains(text, field+":") {
			t.Errorf("the chart sets %s:\n%s", field, text)
		}
	}
}

// A kubectl apply writes the manifest into an annotation, and all annotations of an object may
// have 256 KiB.
func TestTheCRDsFitIntoAnApply(t *testing.T) {
	for key, object := range parse(t, read(t, "deploy/install.yaml"), "") {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if limit := 250 << 10; len(text) > limit {
			t.Errorf("%s has %d bytes, want at most %d: kubectl apply then needs --server-side", key, len(text), limit)
		}
	}
}

func TestTheSchemaRefuses(t *testing.T) {
	for _, c := range []struct{ values, says string }{
		{"replicas: 2", "additional properties 'replicas' not allowed"},
		{"etcdOperator: {replica: 2}", "additional properties 'replica' not allowed"},
		{"backupOperator: {resources: {limit: {}}}", "additional properties 'limit' not allowed"},
		{"image: {name: etcd-operator}", "additional properties 'name' not allowed"},
		{"monitoring: {enable: true}", "additional properties 'enable' not allowed"},
		{"backupVolume: {claim: x}", "additional properties 'claim' not allowed"},
		{"imagePullSecrets: [registry]", "/imagePullSecrets/0"},
		{"scope: cluster", "/scope"},
		{"crds: true", "/crds"},
		{"image: {repository: etcd-operator}", "/image/repository"}, // incomplete
		{"image: {repository: 'ghcr.io/x/etcd-operator:v1.0.0'}", "/image/repository"},
		{"image: {digest: 0123}", "/image/digest"},
		{"image: {digest: 'sha256:0123'}", "/image/digest"},
		{"image: {tag: 1.0}", "/image/tag"},
		{"restoreOperator: {replicas: -1}", "/restoreOperator/replicas"},
		{"etcdOperator: {extraArgs: [-cluster-wide]}", "/etcdOperator/extraArgs/0"},
		{"etcdOperator: {extraArgs: [--create-crd=true]}", "/etcdOperator/extraArgs/0"},
		{"backupOperator: {extraArgs: ['-listen-addr=:9090']}", "/backupOperator/extraArgs/0"},           // probes ask port 8080
		{"backupOperator: {volumes: [{name: backups, emptyDir: {}}]}", "/backupOperator/volumes/0/name"}, // backupVolume's
		{"backupOperator: {volumeMounts: [{name: gcp}]}", "missing property 'mountPath'"},
		{"etcdOperator: {podLabels: {name: mine}}", "invalid propertyName 'name'"}, // the selector's
	} {
		_, err := tryRender(release, c.values)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", c.values, err, c.says)
		}
	}
}

// values.yaml names every value, and the schema describes each.
func TestEveryValueIsDescribed(t *testing.T) {
	var schema struct {
		Properties map[string]property
		Defs       map[string]property `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(read(t, "charts/etcd-operator/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(read(t, "charts/etcd-operator/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	for name, p := range schema.Properties {
		if name == "global" || name == "enabled" { // Helm's own
			continue
		}
		if _, ok := values[name]; !ok || p.Description == "" {
			t.Errorf("%s: in values.yaml: %t, description %q", name, ok, p.Description)
		}
		children := p.Properties
		if p.Ref == "#/$defs/operator" {
			children = schema.Defs["operator"].Properties
		}
		below, _ := values[name].(map[string]any)
		for child, c := range children {
			if _, ok := below[child]; !ok || c.Description == "" && child != "enabled" {
				t.Errorf("%s.%s: in values.yaml: %t, description %q", name, child, ok, c.Description)
			}
		}
	}
}

type property struct {
	Description string
	Ref         string `json:"$ref"`
	Properties  map[string]property
}

// Values that no other way to install has.
func TestValuesOfThePods(t *testing.T) {
	text := renderIn(t, release, `
crds: register
image: {tag: v1.2.3, pullPolicy: Always}
enabled: true # of the chart that depends on this one
backupVolume: {claimName: etcd-backups}
etcdOperator: {enabled: false}
restoreOperator: {enabled: false}
backupOperator:
  extraArgs: [-any-scope=false]
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
  serviceAccountAnnotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/backups"}
  podAnnotations: {a: b}
  podLabels: {team: storage}
  priorityClassName: system-cluster-critical
  nodeSelector: {pool: infra}
  tolerations: [{key: infra, operator: Exists}]
  affinity: {nodeAffinity: {}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  volumes: [{name: gcp, secret: {secretName: gcp-credentials}}]
  volumeMounts: [{name: gcp, mountPath: /etc/gcp}]
`)
	found := parse(t, text, release)
	if len(found) != 6 {
		t.Errorf("%d objects, want the backup operator's four, and the two with the right to register CRDs:\n%s", len(found), text)
	}
	deployment := toText(t, found["Deployment etcd-backup-operator"])
	for _, want := range []string{
		"image: docker.io/etcd-operator/etcd-operator:v1.2.3\n", "imagePullPolicy: Always\n",
		"- etcd-backup-operator\n        - -volume-dir=/var/lib/etcd-backups\n        - -any-scope=false\n", "name: HTTPS_PROXY\n", "name: MY_POD_NAME\n", "annotations:\n        a: b\n", "team: storage\n",
		"priorityClassName: system-cluster-critical\n", "pool: infra\n", "operator: Exists\n", "nodeAffinity: {}\n",
		"topologyKey: zone\n", "secretName: gcp-credentials\n", "mountPath: /etc/gcp\n", "claimName: etcd-backups\n", "mountPath: /var/lib/etcd-backups\n",
	} {
		if !strings.Contains(deployment, want) {
			t.Errorf("the Deployment lacks %q:\n%s", want, deployment)
		}
	}
	if account := toText(t, found["ServiceAccount etcd-backup-operator"]); !strings.Contains(account, "eks.amazonaws.com/role-arn: arn:aws:iam::1:role/backups\n") {
		t.Errorf("the service account has no identity:\n%s", account)
	}
	binding := toText(t, found["ClusterRoleBinding etcd-operator-register-crds-databases"])
	if strings.Count(binding, "kind: ServiceAccount\n") != 1 || !strings.Contains(binding, "name: etcd-backup-operator\n  namespace: databases\n") {
		t.Errorf("operators that are not there may register CRDs:\n%s", binding)
	}
}
