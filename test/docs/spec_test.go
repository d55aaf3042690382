// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

// Each field of the spec has its row in doc/spec.md, with its path, its meaning,
// and what an edit does. What is inside of the types of Kubernetes is explained
// by Kubernetes.
func TestTheSpecsPageHasEachField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "doc/spec.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], " `")] = cells
		}
	}
	definition, err := crd.EtcdCluster()
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	var visit func(prefix string, schema apiextensionsv1.JSONSchemaProps)
	visit = func(prefix string, schema apiextensionsv1.JSONSchemaProps) {
		for name, child := range schema.Properties {
			switch path := prefix + name; path {
			case "pod", "service", "TLS", "TLS.static", "TLS.static.member":
				visit(path+".", child)
			default:
				fields[path] = true
			}
		}
	}
	visit("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	if len(fields) < 30 {
		t.Errorf("only %d fields were found", len(fields))
	}
	for path := range fields {
		if len(rows[path]) != 3 {
			t.Errorf("doc/spec.md has no row with three cells for %s", path)
		}
	}
	for path := range rows {
		if !fields[path] {
			t.Errorf("doc/spec.md has a row for %s, which is no field", path)
		}
	}
	// What changes by itself is compared with where it comes from.
	for path, want := range map[string]string{
		"version":                "Default: " + v1beta2.DefaultVersion + " for a new cluster",
		"pod.DNSTimeoutInSecond": fmt.Sprintf("Default: %d", v1beta2.DefaultDNSTimeout/time.Second),
	} {
		if !strings.Contains(strings.Join(rows[path], " "), want) {
			t.Errorf("doc/spec.md does not say of %s: %q", path, want)
		}
	}
}
