// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/crd"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/store"
	"github.com/etcd-operator/etcd-operator/pkg/store/oss"
)

// specPages are the pages about the specs. Kubernetes documents its own types, so only our
// sections are checked.
var specPages = []struct {
	file       string
	definition func() (*apiextensionsv1.CustomResourceDefinition, error)
	sections   []string
	// fields is the minimal number of fields.
	fields int
	// defaults are fields that change together with their source.
	defaults map[string]string
}{
	{
		file: "doc/spec.md", definition: crd.EtcdCluster, fields: 30,
		sections: []string{"pod", "service", "TLS", "TLS.static", "TLS.static.member"},
		defaults: map[string]string{
			"version":                "Default: " + v1beta2.DefaultVersion + " for a new cluster",
			"pod.DNSTimeoutInSecond": fmt.Sprintf("Default: %d", v1beta2.DefaultDNSTimeout/time.Second),
		},
	},
	{
		file: "doc/backup-spec.md", definition: crd.EtcdBackup, fields: 25,
		sections: []string{"etcdCluster", "backupPolicy", "restoreTest", "restoreTest.check", "continuous", "s3", "abs", "gcs", "oss", "volume"},
		defaults: map[string]string{
			"backupPolicy.timeoutInSecond": fmt.Sprintf("Default: %d", v1beta2.DefaultBackupTimeout/time.Second),
			"restoreTest.timeoutInSecond":  fmt.Sprintf("Default: %d", v1beta2.DefaultRestoreTestTimeout/time.Second),
			"continuous.maxLagInSecond":    fmt.Sprintf("Default: %d", v1beta2.DefaultMaxLag/time.Second),
			"oss.endpoint":                 "Default: `" + oss.DefaultEndpoint + "`",
		},
	},
	{
		file: "doc/restore-spec.md", definition: crd.EtcdRestore, fields: 20,
		sections: []string{"etcdCluster", "clusterTemplate", "clusterTemplate.metadata", "s3", "abs", "gcs", "oss", "volume"},
		defaults: map[string]string{
			"oss.endpoint": "Default: `" + oss.DefaultEndpoint + "`",
			"oldVolumes":   "Default: `" + string((&v1beta2.RestoreSpec{}).EffectiveOldVolumes()) + "`",
		},
	},
}

// The page about a spec has a row for each field: its path, its meaning, and the effect of an
// edit.
func TestTheSpecsPagesHaveEachField(t *testing.T) {
	for _, page := range specPages {
		t.Run(page.file, func(t *testing.T) {
			rows := rowsOf(t, page.file)
			definition, err := page.definition()
			if err != nil {
				t.Fatal(err)
			}
			fields := map[string]bool{}
			var visit func(prefix string, schema apiextensionsv1.JSONSchemaProps)
			visit = func(prefix string, schema apiextensionsv1.JSONSchemaProps) {
				for name, child := range schema.Properties {
					if path := prefix + name; slices.Contains(page.sections, path) {
						visit(path+".", child)
					} else {
						fields[path] = true
					}
				}
			}
			visit("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
			if len(fields) < page.fields {
				t.Errorf("only %d fields were found", len(fields))
			}
			for path := range fields {
				if len(rows[path]) != 3 {
					t.Errorf("the page has no row with three cells for %s", path)
				}
			}
			for path := range rows {
				if !fields[path] {
					t.Errorf("the page has a row for %s, which is no field", path)
				}
			}
			for path, want := range page.defaults {
				if !strings.Contains(strings.Join(rows[path], " "), want) {
					t.Errorf("the page does not say of %s: %q", path, want)
				}
			}
		})
	}
}

// rowsOf returns the cells of the tables' rows that begin with code, by that code.
func rowsOf(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], " `")] = cells
		}
	}
	return rows
}

// The pages about stores say from which size on backups are sent in parts.
func TestThePagesKnowTheSizeOfAPart(t *testing.T) {
	want := fmt.Sprintf("%d MiB", store.PartSize(-1)>>20)
	sizes := regexp.MustCompile(`ackups of (?:less than )?(\d+ [KMG]iB)`)
	for _, page := range []string{"backup.md", "backup/s3.md", "backup/abs.md", "backup/gcs.md", "backup/oss.md"} {
		text, err := os.ReadFile(filepath.Join(root, "doc", page))
		if err != nil {
			t.Fatal(err)
		}
		found := sizes.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("doc/%s does not say that backups of %s and more are sent in parts", page, want)
		}
		for _, match := range found {
			if match[1] != want {
				t.Errorf("doc/%s mentions backups of %s, and parts are of %s", page, match[1], want)
			}
		}
	}
}
