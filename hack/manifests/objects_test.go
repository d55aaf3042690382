// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// objects are the objects of a text, by kind and name.
type objects map[string]map[string]any

// parse reads the objects of a text. It removes what the ways to install may say differently:
// an object in the given namespace need not name it, and only Helm's CRDs have Helm's annotation.
func parse(t *testing.T, text, namespace string) objects {
	t.Helper()
	found := objects{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		metadata := object["metadata"].(map[string]any)
		if metadata["namespace"] == namespace {
			delete(metadata, "namespace")
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "helm.sh/resource-policy")
		}
		if subjects, ok := object["subjects"].([]any); ok {
			for _, subject := range subjects {
				if s := subject.(map[string]any); s["namespace"] == namespace && object["kind"] == "RoleBinding" {
					delete(s, "namespace")
				}
			}
		}
		key := fmt.Sprintf("%s %s", object["kind"], metadata["name"])
		if _, twice := found[key]; twice {
			t.Fatalf("%s is there twice", key)
		}
		found[key] = object
	}
	return found
}

// same fails the test if two ways to install give different objects.
func same(t *testing.T, name string, got objects, otherName string, want objects) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] == nil {
			t.Errorf("%s lacks %s of %s", name, key, otherName)
			continue
		}
		g, w := toText(t, got[key]), toText(t, want[key])
		if g != w {
			t.Errorf("%s differs.\n%s:\n%s\n%s:\n%s", key, name, differing(g, w), otherName, differing(w, g))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if want[key] == nil {
			t.Errorf("%s has %s, and %s has not", name, key, otherName)
		}
	}
}

func toText(t *testing.T, object map[string]any) string {
	t.Helper()
	out, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// differing returns the lines of a that b lacks.
func differing(a, b string) string {
	lines := strings.Split(b, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(a, "\n"), func(line string) bool { return slices.Contains(lines, line) }), "\n")
}

// overlay returns what a kustomization of a user gives. In it, DEPLOY stands for deploy/.
func overlay(t *testing.T, kustomization string) string {
	t.Helper()
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(root + "/deploy")
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.EvalSymlinks(deploy); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(directory, deploy)
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.ReplaceAll(kustomization, "DEPLOY", relative)
	if err := os.WriteFile(filepath.Join(directory, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := build(directory)
	if err != nil {
		t.Fatal(err)
	}
	return string(built)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rightsOf returns the rights of a Role or ClusterRole, as "verb group/resource".
func rightsOf(t *testing.T, object map[string]any) []string {
	t.Helper()
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal([]byte(toText(t, object)), &role); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					list = append(list, verb+" "+group+"/"+resource)
				}
			}
		}
	}
	slices.Sort(list)
	return list
}
