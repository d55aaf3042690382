// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crdrules adds to the CRD of EtcdClusters what the markers on its types
// can't say: rules inside of the types of Kubernetes (an affinity, a volume's
// claim), so that what admission lets through makes a pod that the API server
// takes; rules about edits; and the settings of etcd that are reserved.
// hack/update-codegen.sh runs it on what controller-gen wrote.
//
//	crdrules etcd.database.coreos.com_etcdclusters.yaml
//
// The rules use only what API servers know from Kubernetes 1.30 on; a test in
// pkg/apis/etcd/crd holds them to it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crdrules FILE")
		os.Exit(2)
	}
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "crdrules:", err)
		os.Exit(1)
	}
}

func rewrite(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err = addRules(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

// addRules changes the schema only and leaves the rest of the CRD's text as decoded: its Go
// type would add an empty status.
func addRules(text []byte) ([]byte, error) {
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return nil, err
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	if len(versions) != 1 {
		return nil, fmt.Errorf("there are %d versions, want one", len(versions))
	}
	version, _ := versions[0].(map[string]any)
	document, err := json.Marshal(version["schema"])
	if err != nil {
		return nil, err
	}
	schema := &apiextensionsv1.CustomResourceValidation{}
	if err := json.Unmarshal(document, schema); err != nil {
		return nil, err
	}
	for _, r := range rules() {
		if err := edit(schema.OpenAPIV3Schema, r.at, r.changes); err != nil {
			return nil, fmt.Errorf("%s: %w", r.at, err)
		}
	}
	version["schema"] = schema
	out, err := yaml.Marshal(crd)
	return append([]byte("---\n"), out...), err
}

// rules are all additions, in this order.
func rules() []placed {
	var all []placed
	for _, topic := range [][]placed{edits(), reserved(), notes(), environment(), resources(), scheduling(), volumes(), security()} {
		all = append(all, topic...)
	}
	return all
}
