// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kubectl plays a Kubernetes with the CRDs of some release. It logs its calls, and makes no namespace.
const kubectl = `#!/usr/bin/env bash
echo "$*" >>"$CALLS"
case "$*" in
"version"*) printf 'serverVersion:\n  gitVersion: v1.36.3\n' ;;
"get crd "*subresources*) printf %s "$STATUS" ;;
"get crd "*operator-version*) printf %s "$STAMP" ;;
"get crd "*) echo "customresourcedefinition.apiextensions.k8s.io/$3" ;;
"create namespace"* | "get namespace"*) exit 1 ;;
esac
`

// The operator of the demo replaces CRDs of an earlier release, and all namespaces share them.
func TestTheDemoLeavesCRDsOfAnotherReleaseAlone(t *testing.T) {
	for what, c := range map[string]struct {
		status, stamp string
		begins        bool
	}{
		"v0.9.4":                {"", "", false},
		"no stamp":              {"{}", "", false},
		"a later release":       {"{}", "v9.0.0", false},
		"this release":          {"{}", release(t), true},
		"a build of a tree":     {"{}", release(t) + "-dev", true},
		"a build that is dirty": {"map[]", release(t) + "+dirty", true},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "kubectl"), kubectl)
		write(t, filepath.Join(dir, "kubeconfig"), "{}")
		demo := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "demo"), "--kubeconfig", filepath.Join(dir, "kubeconfig"))
		demo.Env = append(Bare(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"), "STATUS="+c.status, "STAMP="+c.stamp)
		out, err := demo.CombinedOutput()
		calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
		if begins := strings.Contains(string(calls), "create namespace"); err == nil || begins != c.begins ||
			strings.Contains(string(out), "does not name this release") == c.begins {
			t.Errorf("%s: begun is %v, %v: %s\n%s", what, begins, err, out, calls)
		}
	}
}

// Other operators have kinds of the same names.
func TestTheDemoRemovesObjectsOfItsOwnGroup(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "kubectl"), strings.Replace(kubectl, `"create namespace"* | "get namespace"*`, `"apply"*`, 1))
	write(t, filepath.Join(dir, "kubeconfig"), "{}")
	demo := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "demo"), "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	demo.Env = append(Bare(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"), "STATUS={}", "STAMP="+release(t))
	out, err := demo.CombinedOutput()
	calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
	if err == nil || !strings.Contains(string(calls), "delete etcdclusters.etcd.database.coreos.com --all") || strings.Contains(string(calls), "delete etcdclusters ") {
		t.Errorf("%v: %s\n%s", err, out, calls)
	}
}

// Ctrl-C ends a program such as tee, too, which reads what the demo prints.
func TestTheDemoRemovesAllIfNobodyReadsOnAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	// There are CRDs as soon as there is an operator. A program in Go ends when it prints and nobody reads.
	write(t, filepath.Join(dir, "kubectl"), `#!/usr/bin/env bash
set -e
echo "$*" >>"$CALLS"
case "$*" in
"get crd "*) ! grep -q ^apply "$CALLS" || echo "customresourcedefinition.apiextensions.k8s.io/$3" ;;
"rollout status"*) exec sleep 600 ;;
"delete "*) echo deleted; echo "done: $*" >>"$CALLS" ;;
esac
`)
	write(t, filepath.Join(dir, "kubeconfig"), "{}")
	write(t, filepath.Join(dir, "calls"), "")
	temporary := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	demo := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "demo"), "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	demo.Env = append(Bare(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+filepath.Join(dir, "calls"), "TMPDIR="+temporary)
	demo.Stdout, demo.Stderr = writer, writer
	demo.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	var calls []byte
	for began := time.Now(); !bytes.Contains(calls, []byte("rollout status")); time.Sleep(10 * time.Millisecond) {
		if calls, err = os.ReadFile(filepath.Join(dir, "calls")); err != nil || time.Since(began) > time.Minute {
			_ = syscall.Kill(-demo.Process.Pid, syscall.SIGKILL)
			t.Fatalf("no operator: %v\n%s", err, calls)
		}
	}
	_ = reader.Close()
	if err := syscall.Kill(-demo.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := demo.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the demo ended with %v", err)
	}
	calls, _ = os.ReadFile(filepath.Join(dir, "calls"))
	for _, want := range []string{"namespace etcd-operator-demo", "clusterrolebinding,clusterrole", "crd etcdclusters."} {
		if !bytes.Contains(calls, []byte("done: delete "+want)) {
			t.Errorf("the demo has not removed %s:\n%s", want, calls)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("the demo leaves %v, %v", left, err)
	}
}

// release is the version that the CRDs of this tree name.
func release(t *testing.T) string {
	t.Helper()
	manifest, err := os.ReadFile(filepath.Join(root, "deploy", "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(manifest), "/operator-version: ")
	version, _, _ := strings.Cut(after, "\n")
	return version
}
