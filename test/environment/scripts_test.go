// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// production is the environment of a person who works on clusters in production.
var production = map[string]string{
	"KUBECONFIG": "/production", "KUBERC": "/production", "KUBERNETES_MASTER": "https://production", "KUBERNETES_SERVICE_HOST": "10.0.0.1",
	"KUBECTL": "kubectl --context=production", "HELM_KUBECONTEXT": "production", "NAMESPACE": "production", "ROLE_NAME": "production",
	"ETCD_NAME": "production", "ETCDCTL_ENDPOINTS": "https://production:2379",
	"AWS_PROFILE": "production", "AZURE_CLIENT_ID": "production", "GOOGLE_APPLICATION_CREDENTIALS": "/production",
	"GOFLAGS": "-tags=e2e -p=1 --tags=smoke,bench", "GOOS": "plan9", "CDPATH": "/production",
	"BASH_FUNC_kubectl%%": "() { echo production; }",
	"LOCALKUBE_NAME":      "mine", "HTTPS_PROXY": "http://proxy",
}

// ofAnyCluster is the variables that both functions leave.
var ofAnyCluster = map[string]string{
	"KUBECONFIG": "/dev/null", "KUBERC": "off", "KUBERNETES_MASTER": "http://127.0.0.1:1", "KUBERNETES_SERVICE_HOST": "",
	"KUBECTL": "", "HELM_KUBECONTEXT": "", "NAMESPACE": "", "ROLE_NAME": "", "BASH_FUNC_kubectl%%": "",
	"LOCALKUBE_NAME": "mine", "HTTPS_PROXY": "http://proxy",
}

func TestScriptsForgetClustersAndClouds(t *testing.T) {
	for function, others := range map[string]map[string]string{
		"clean_environment": {
			"ETCD_NAME": "", "ETCDCTL_ENDPOINTS": "", "AWS_PROFILE": "", "AZURE_CLIENT_ID": "", "GOOGLE_APPLICATION_CREDENTIALS": "",
			"GOFLAGS": " -p=1", "GOOS": "", "GOWORK": "off", "CDPATH": "",
		},
		// Access to a cluster may need a cloud.
		"forget_clusters": {"AWS_PROFILE": "production", "AZURE_CLIENT_ID": "production", "GOOGLE_APPLICATION_CREDENTIALS": "/production"},
	} {
		got := map[string]string{}
		for variable := range strings.Lines(bash(t, function+"; env")) {
			name, value, _ := strings.Cut(strings.TrimSuffix(variable, "\n"), "=")
			got[name] = value
		}
		for _, want := range []map[string]string{ofAnyCluster, others} {
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s: %s is %q, want %q", function, name, got[name], value)
				}
			}
		}
	}
}

func TestAScriptEndsWhereThereIsNoLocalKubernetes(t *testing.T) {
	for what, kube := range map[string]string{
		"it is down":             "echo false; exit 1",
		"hack/kube is not built": "exit 1",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "hack", "kube"), "#!/bin/sh\n"+kube+"\n")
		if got := bash(t, `cd "$1"; use_kube && echo continued; true`, dir); got != "" {
			t.Errorf("%s: %s", what, got)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hack", "kube"), "#!/bin/sh\necho export KUBECONFIG=/local\n")
	if got := bash(t, `cd "$1"; use_kube; echo "$KUBECONFIG"`, dir); got != "/local\n" {
		t.Errorf("KUBECONFIG is %q", got)
	}
}

// needs matches commands that read the environment for a cluster, an etcd or a cloud.
var needs = regexp.MustCompile(`(?m)^[^#\n]*(\bkubectl |\bgo test\b|hack/kube env\b|test2json)`)

func TestEveryScriptThatRunsKubectlOrTestsCleansItsEnvironment(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(root, "hack", "*"))
	if err != nil {
		t.Fatal(err)
	}
	clean := regexp.MustCompile(`(?m)^[^#\n]*\bclean_environment\b`)
	goesOn := regexp.MustCompile(`(?m)^\s*eval "\$\(hack/kube env\)".*`)
	found := 0
	for _, script := range append(scripts, filepath.Join(root, ".ci", "run")) {
		if info, err := os.Stat(script); err != nil || info.IsDir() || strings.HasSuffix(script, ".sh") {
			continue // a sourced file is part of another script
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !needs.Match(text) {
			continue
		}
		found++
		if !clean.Match(text) {
			t.Errorf("%s runs kubectl or tests: it must call clean_environment of hack/environment.sh", script)
		}
		if line := goesOn.Find(text); line != nil {
			t.Errorf("%s: %s: use use_kube of hack/environment.sh: the eval continues if hack/kube fails", script, line)
		}
	}
	if found < 5 {
		t.Errorf("only %d scripts are found to run kubectl or tests", found)
	}
}

// Services and cron may run without a home directory.
func TestAScriptWithoutAHomeSaysWhatToSet(t *testing.T) {
	for script, argument := range map[string]string{"kube": "help", "helm": "version"} {
		run := exec.CommandContext(t.Context(), filepath.Join(root, "hack", script), argument)
		run.Env = Bare()
		out, err := run.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "set HOME or XDG_CACHE_HOME") {
			t.Errorf("hack/%s: %v: %s", script, err, out)
		}
	}
}

// bash runs commands after hack/environment.sh, in the environment of production.
func bash(t *testing.T, commands string, args ...string) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join(root, "hack", "environment.sh"))
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "bash", append([]string{"-euc", `source "$0"; ` + commands, script}, args...)...)
	shell.Env = Bare()
	for name, value := range production {
		shell.Env = append(shell.Env, name+"="+value)
	}
	shell.Stderr = os.Stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", commands, err)
	}
	return string(out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
