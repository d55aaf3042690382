// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops_test runs the health checks for GitOps tools as those tools run them.
package gitops_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const customizations = "argocd/resource_customizations/" + api.GroupName

var kinds = []string{api.EtcdClusterResourceKind, api.EtcdBackupResourceKind, api.EtcdRestoreResourceKind}

// healthCase is an entry of health_test.yaml, in the form of Argo CD's repository.
type healthCase struct {
	HealthStatus struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	} `json:"healthStatus"`
	InputPath string `json:"inputPath"`
}

func eachCase(t *testing.T, test func(t *testing.T, kind string, c healthCase, obj map[string]any)) {
	for _, kind := range kinds {
		var cases struct {
			Tests []healthCase `json:"tests"`
		}
		decode(t, filepath.Join(customizations, kind, "health_test.yaml"), &cases)
		files, err := filepath.Glob(filepath.Join(customizations, kind, "testdata", "*.yaml"))
		if err != nil || len(files) != len(cases.Tests) || len(files) < 3 {
			t.Fatalf("%s: %d cases of %d objects: %v", kind, len(cases.Tests), len(files), err)
		}
		for _, c := range cases.Tests {
			t.Run(kind+"/"+strings.TrimSuffix(filepath.Base(c.InputPath), ".yaml"), func(t *testing.T) {
				obj := map[string]any{}
				decode(t, filepath.Join(customizations, kind, c.InputPath), &obj)
				test(t, kind, c, obj)
			})
		}
	}
}

func decode(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Argo CD offers a script the object as obj, and no libraries that reach the system.
func TestArgoCDJudgesEachState(t *testing.T) {
	eachCase(t, func(t *testing.T, kind string, c healthCase, obj map[string]any) {
		script, err := os.ReadFile(filepath.Join(customizations, kind, "health.lua"))
		if err != nil {
			t.Fatal(err)
		}
		l := lua.NewState(lua.Options{SkipOpenLibs: true})
		defer l.Close()
		for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString} {
			if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
				t.Fatal(err)
			}
		}
		l.SetGlobal("obj", luaValue(l, obj))
		if err := l.DoString(string(script)); err != nil {
			t.Fatal(err)
		}
		result, ok := l.Get(-1).(*lua.LTable)
		if !ok {
			t.Fatalf("the script returns %v", l.Get(-1))
		}
		status, message := result.RawGetString("status").String(), result.RawGetString("message").String()
		if status != c.HealthStatus.Status || message != c.HealthStatus.Message {
			t.Errorf("%s: %s, want %s: %s", status, message, c.HealthStatus.Status, c.HealthStatus.Message)
		}
	})
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := l.NewTable()
		for k, v := range value {
			table.RawSetString(k, luaValue(l, v))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, v := range value {
			table.Append(luaValue(l, v))
		}
		return table
	case string:
		return lua.LString(value)
	case float64:
		return lua.LNumber(value)
	case bool:
		return lua.LBool(value)
	}
	return lua.LNil
}

func TestTheConfigMapHoldsTheScripts(t *testing.T) {
	var config corev1.ConfigMap
	decode(t, "argocd/argocd-cm.yaml", &config)
	if len(config.Data) != len(kinds) {
		t.Errorf("%d entries, want %d", len(config.Data), len(kinds))
	}
	for _, kind := range kinds {
		script, err := os.ReadFile(filepath.Join(customizations, kind, "health.lua"))
		if err != nil {
			t.Fatal(err)
		}
		if config.Data["resource.customizations.health."+api.GroupName+"_"+kind] != string(script) {
			t.Errorf("argocd-cm.yaml has another script for %s than health.lua", kind)
		}
	}
}

// The objects of the cases are of the API, or the scripts are tested with what never exists.
func TestCasesAreObjectsOfTheAPI(t *testing.T) {
	eachCase(t, func(t *testing.T, kind string, _ healthCase, obj map[string]any) {
		text, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		typed := map[string]any{"EtcdCluster": &api.EtcdCluster{}, "EtcdBackup": &api.EtcdBackup{}, "EtcdRestore": &api.EtcdRestore{}}[kind]
		if err := yaml.UnmarshalStrict(text, typed); err != nil {
			t.Error(err)
		}
	})
}

// fluxJudges is what Flux makes of each case. Flux has no verdict for what a person has stopped.
var fluxJudges = map[string]string{
	"EtcdCluster/all_members_lost": "Failed",
	"EtcdCluster/creating":         "InProgress",
	"EtcdCluster/edited":           "InProgress",
	"EtcdCluster/healthy":          "Current",
	"EtcdCluster/paused":           "Failed",
	"EtcdCluster/quorum_lost":      "Failed",
	"EtcdCluster/scaling":          "InProgress",
	"EtcdCluster/unseen":           "Unknown",
	"EtcdBackup/complete":          "Current",
	"EtcdBackup/failing":           "Failed",
	"EtcdBackup/running":           "InProgress",
	"EtcdBackup/scheduled":         "Current",
	"EtcdBackup/suspended":         "Current",
	"EtcdRestore/failed":           "Failed",
	"EtcdRestore/restored":         "Current",
	"EtcdRestore/verifying":        "InProgress",
}

func TestFluxJudgesEachState(t *testing.T) {
	var kustomization struct {
		Spec struct {
			HealthCheckExprs []map[string]string `json:"healthCheckExprs"`
		} `json:"spec"`
	}
	text, err := os.ReadFile("flux/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		t.Fatal(err)
	}
	eachCase(t, func(t *testing.T, kind string, c healthCase, obj map[string]any) {
		exprs := map[string]string{}
		for _, e := range kustomization.Spec.HealthCheckExprs {
			if e["kind"] == kind && e["apiVersion"] == obj["apiVersion"] {
				exprs = e
			}
		}
		got, err := fluxStatus(exprs, obj)
		want := fluxJudges[kind+"/"+strings.TrimSuffix(filepath.Base(c.InputPath), ".yaml")]
		if got != want {
			t.Errorf("Flux finds %s (%v), want %q", got, err, want)
		}
	})
}

// fluxStatus is the status of an object as Flux's RFC 0009 defines it. Flux waits while it is
// InProgress or Unknown, until its timeout.
func fluxStatus(exprs map[string]string, obj map[string]any) (string, error) {
	status, _ := obj["status"].(map[string]any)
	metadata, _ := obj["metadata"].(map[string]any)
	if seen, ok := status["observedGeneration"]; ok && seen != metadata["generation"] {
		return "InProgress", nil
	}
	for _, e := range []struct{ name, status string }{{"inProgress", "InProgress"}, {"failed", "Failed"}, {"current", "Current"}} {
		if exprs[e.name] == "" {
			continue
		}
		holds, err := evaluate(exprs[e.name], obj)
		if err != nil {
			return "Unknown", err
		}
		if holds {
			return e.status, nil
		}
	}
	return "InProgress", nil
}

// evaluate parses an expression without declarations, as Flux does: the variables are the
// fields that the object has.
func evaluate(expression string, obj map[string]any) (bool, error) {
	env, err := cel.NewEnv()
	if err != nil {
		return false, err
	}
	ast, issues := env.Parse(expression)
	if issues.Err() != nil {
		return false, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return false, err
	}
	result, _, err := program.Eval(obj)
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("%s is %v", expression, result)
	}
	return holds, nil
}
