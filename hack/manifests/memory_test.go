// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Go collects garbage when the memory in use has doubled, whatever the container's limit. If it
// knows the limit, it collects in time, and the kernel does not end the operator.
func TestGoKnowsTheMemoryLimit(t *testing.T) {
	texts := map[string]string{
		"deploy/namespaced-with-volume": overlay(t, "resources: [DEPLOY/namespaced-with-volume]"),
		"the chart":                     renderIn(t, release, "crds: none"),
		"the chart without a limit":     renderIn(t, release, "{crds: none, etcdOperator: {resources: {requests: {memory: 64Mi}}}}"),
		"the chart with more variables": renderIn(t, release, `{crds: none, etcdOperator: {env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]}}`),
	}
	for _, directory := range []string{"deploy", "example"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			path, err = filepath.Rel(root, path)
			if err != nil {
				return err
			}
			if text := read(t, path); strings.Contains(text, "\nkind: Deployment\n") {
				texts[path] = text
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := 4 + 5 + 5; len(texts) != want { // those above, and files of deploy and example
		t.Errorf("%d texts with operators, want %d", len(texts), want)
	}
	for from, text := range texts {
		for name, object := range parse(t, text, release) {
			if object["kind"] != "Deployment" {
				continue
			}
			variables := memoryLimitsOf(t, object)
			if len(variables) != 1 || variables[0].ValueFrom == nil || variables[0].ValueFrom.ResourceFieldRef == nil {
				t.Errorf("%s: %s has the memory limits %v, want one, that of the container", from, name, variables)
				continue
			}
			limit := variables[0].ValueFrom.ResourceFieldRef
			// Without a divisor, the API server writes one of 0, and Argo CD sees a difference.
			if limit.Resource != "limits.memory" || limit.ContainerName != "" || limit.Divisor.String() != "1" {
				t.Errorf("%s: %s has the memory limit %v", from, name, limit)
			}
		}
	}
}

// Kubernetes refuses a server-side apply of a variable that is there twice.
func TestAMemoryLimitInTheValuesReplacesThatOfTheChart(t *testing.T) {
	text := renderIn(t, release, `{crds: none, backupOperator: {env: [{name: GOMEMLIMIT, value: 400MiB}]}}`)
	variables := memoryLimitsOf(t, parse(t, text, release)["Deployment etcd-backup-operator"])
	if len(variables) != 1 || variables[0].Value != "400MiB" || variables[0].ValueFrom != nil {
		t.Errorf("the memory limits are %v, want 400MiB", variables)
	}
}

// memoryLimitsOf returns the variables of an operator that state a memory limit for Go.
func memoryLimitsOf(t *testing.T, deployment map[string]any) []corev1.EnvVar {
	t.Helper()
	var d struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := yaml.Unmarshal([]byte(toText(t, deployment)), &d); err != nil {
		t.Fatal(err)
	}
	containers := d.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers, want the operator's", len(containers))
	}
	return slices.DeleteFunc(containers[0].Env, func(v corev1.EnvVar) bool { return v.Name != "GOMEMLIMIT" })
}
