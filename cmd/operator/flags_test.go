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
	t.Setenv("MY_POD_NAME", "")
	t.Setenv("MY_POD_NAMESPACE", "")
	for _, tc := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"-version", operator.ExitOK, "etcd-operator Version: ", ""},
		{"-h", operator.ExitOK, "", "Usage:"},
		{"-nonsense", operator.ExitUsage, "", "flag provided but not defined: -nonsense"},
		{"-create-crd false", operator.ExitUsage, "", "-create-crd=false"},
		{"-chaos-level 3", operator.ExitUsage, "", "the highest is 2"},
		{"-gc-interval 10", operator.ExitUsage, "", "invalid value"},
		{"", operator.ExitFailed, "", "the environment lacks MY_POD_NAME and MY_POD_NAMESPACE"},
		{"-kubeconfig /does/not/exist", operator.ExitFailed, "", "/does/not/exist"},
	} {
		var stdout, stderr bytes.Buffer
		if code := operate(t.Context(), strings.Fields(tc.args), &stdout, &stderr); code != tc.code {
			t.Errorf("%q: exit code %d, want %d", tc.args, code, tc.code)
		}
		if !strings.Contains(stdout.String(), tc.stdout) || tc.stdout == "" && stdout.Len() > 0 {
			t.Errorf("%q: printed %q, want %q", tc.args, stdout.String(), tc.stdout)
		}
		if !strings.Contains(stderr.String(), tc.stderr) {
			t.Errorf("%q: said %q, want %q", tc.args, stderr.String(), tc.stderr)
		}
	}
}

func TestCheckDNSIsASubcommand(t *testing.T) {
	t.Setenv("MY_POD_IP", "")
	var stdout, stderr bytes.Buffer
	if code := checkDNS(t.Context(), []string{"-name=localhost"}, &stdout, &stderr); code != operator.ExitOK {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "localhost to resolve") {
		t.Errorf("printed %q", stdout.String())
	}
	if code := checkDNS(t.Context(), nil, &stdout, &stderr); code != operator.ExitUsage {
		t.Errorf("exit code %d without -name", code)
	}
	if code := checkDNS(t.Context(), []string{"-name=no-such-host.invalid", "-timeout=1ms"}, &stdout, &stderr); code != operator.ExitFailed {
		t.Errorf("exit code %d for a name that does not resolve", code)
	}
	if !strings.Contains(stderr.String(), "gave up") {
		t.Errorf("said %q", stderr.String())
	}
}

func TestTheCommandsOfRestoredMembersAreSubcommands(t *testing.T) {
	data := t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "member", "wal", "0.wal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, args := range map[string]string{
		"fetch-backup":   "-url=http://restore.invalid/ -token-file=/no/token -size=1 -sha256=" + strings.Repeat("ab", 32) + " -dir=" + dir + " -data-dir=",
		"restore-backup": "-tool=/no/etcdutl -name=a -peer-url=http://a:2380 -initial-cluster-token=t -dir=" + dir + " -data-dir=",
	} {
		var stdout, stderr bytes.Buffer
		command := initContainers[name]
		if code := command(t.Context(), strings.Fields(args+data), &stdout, &stderr); code != operator.ExitOK || !strings.Contains(stdout.String(), name+": the member has data") {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout.String(), stderr.String())
		}
		if code := command(t.Context(), nil, &stdout, &stderr); code != operator.ExitUsage {
			t.Errorf("%s: exit code %d without flags", name, code)
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
	if code := fetchBackup(ctx, args, &stdout, &stderr); code != operator.ExitFailed || !strings.Contains(stderr.String(), "fetch-backup: was told to stop") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
