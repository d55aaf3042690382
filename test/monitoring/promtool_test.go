//go:build promtool

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool runs the program in the variable PROMTOOL, which hack/test monitoring builds.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program := os.Getenv("PROMTOOL")
	if program == "" {
		t.Fatal("PROMTOOL is not set: run hack/test monitoring")
	}
	if output, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, output)
	}
}

func TestPromtoolTakesTheRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", filepath.Join(root, "example/monitoring/rules.yaml"))
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, append([]string{"test", "rules"}, ruleTests...)...)
}

// Each query of the dashboard becomes a rule in a file for promtool.
func TestPromtoolParsesEachQuery(t *testing.T) {
	var rules []map[string]string
	for i, q := range queries(t) {
		rules = append(rules, map[string]string{"record": fmt.Sprintf("query:%d", i), "expr": q.Expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "queries", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}
