// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/operator/operatortest"
)

func TestFlagsAndDefaultsOfV094(t *testing.T) {
	got, err := parseFlags(nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want := options{Flags: operator.Flags{ListenAddr: "0.0.0.0:8080", CreateCRD: true}, gcInterval: 10 * time.Minute, chaosLevel: -1}
	if got != want {
		t.Errorf("defaults %+v, want %+v", got, want)
	}

	got, err = parseFlags(strings.Fields("-listen-addr=:9090 -create-crd=false -cluster-wide -gc-interval=1h -chaos-level=2 --operator-image i -kubeconfig k -version"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	want = options{Flags: operator.Flags{ListenAddr: ":9090", ClusterWide: true, Kubeconfig: "k", Version: true}, gcInterval: time.Hour, chaosLevel: 2, operatorImage: "i"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestExitCodesAndOutput(t *testing.T) {
	operatortest.Check(t, operate, []operatortest.Call{
		{Args: "-version", Code: operator.ExitOK, Stdout: "etcd-operator Version: "},
		{Args: "-h", Code: operator.ExitOK, Stderr: "Usage:"},
		{Args: "-nonsense", Code: operator.ExitUsage, Stderr: "flag provided but not defined: -nonsense"},
		{Args: "-create-crd false", Code: operator.ExitUsage, Stderr: "-create-crd=false"},
		{Args: "-chaos-level 3", Code: operator.ExitUsage, Stderr: "the highest is 2"},
		{Args: "-gc-interval 10", Code: operator.ExitUsage, Stderr: "invalid value"},
		{Args: "", Code: operator.ExitFailed, Stderr: "the environment lacks MY_POD_NAME and MY_POD_NAMESPACE"},
		{Args: "-kubeconfig /does/not/exist", Code: operator.ExitFailed, Stderr: "/does/not/exist"},
	})
}

func TestTheCommandsOfRestoredMembersAreSubcommands(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "member", "wal", "0.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data+".member", []byte("a"), 0o600); err != nil { // whose data it is
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, args := range map[string]string{
		"fetch-backup":   "-url=http://restore.invalid/ -token-file=/no/token -size=1 -sha256=" + strings.Repeat("ab", 32) + " -dir=" + dir + " -data-dir=",
		"check-source":   "-endpoint=http://a:2379 -cluster-id=a -owner=uid -dir=" + dir + " -data-dir=",
		"copy-source":    "-endpoint=http://a:2379 -cluster-id=a -owner=uid -dir=" + dir + " -data-dir=",
		"restore-backup": "-tool=/no/etcdutl -name=a -peer-url=http://a:2380 -initial-cluster-token=t -dir=" + dir + " -data-dir=",
	} {
		var stdout, stderr bytes.Buffer
		command := inPods[name]
		if code := command(t.Context(), strings.Fields(args+data), &stdout, &stderr); code != operator.ExitOK || !strings.Contains(stdout.String(), name+": the member has data") && name != "check-source" {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout.String(), stderr.String())
		}
		if code := command(t.Context(), nil, &stdout, &stderr); code != operator.ExitUsage {
			t.Errorf("%s: exit code %d without flags", name, code)
		}
	}
	for tool, want := range map[string]int{os.Args[0]: operator.ExitOK, "/no/etcdutl": operator.ExitFailed} {
		var stdout, stderr bytes.Buffer
		if code := checkTool(t.Context(), []string{"-tool=" + tool}, &stdout, &stderr); code != want || want != operator.ExitOK && !strings.Contains(stderr.String(), "has no /no/etcdutl") {
			t.Errorf("check-tool of %s: exit code %d: %s", tool, code, stderr.String())
		}
	}
	// What is left in etcd's image is this program.
	if _, err := os.Stat(filepath.Join(dir, "etcd-operator")); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	args := strings.Fields("-url=http://restore.invalid/ -token-file=/no/token -size=1 -sha256=" + strings.Repeat("ab", 32) + " -dir=" + t.TempDir() + " -data-dir=" + t.TempDir())
	if code := fetchBackup(ctx, args, &stdout, &stderr); code != operator.ExitFailed || !strings.Contains(stderr.String(), "fetch-backup: was asked to stop") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func TestTheDataOfASurvivorIsServedUntilTheEnd(t *testing.T) {
	var stdout, stderr bytes.Buffer
	command := inPods["serve-data"]
	if code := command(t.Context(), nil, &stdout, &stderr); code != operator.ExitUsage || !strings.Contains(stderr.String(), "-data-dir is missing") {
		t.Errorf("exit code %d without flags: %s", code, stderr.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := command(ctx, strings.Fields("-data-dir=/no/data -listen=127.0.0.1:0"), &stdout, &stderr); code != operator.ExitOK {
		t.Errorf("exit code %d at the end: %s", code, stderr.String())
	}
}
