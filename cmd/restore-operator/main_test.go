// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/operator"
)

func TestFlagsAndDefaults(t *testing.T) {
	for args, want := range map[string]options{
		"": {Flags: operator.Flags{ListenAddr: "0.0.0.0:8080", CreateCRD: true}, serveAddr: "0.0.0.0:19999"},
		"-listen-addr=:9090 --create-crd=false -cluster-wide -kubeconfig k -version -volume-dir /backups -serve-addr :20000": {
			Flags:     operator.Flags{ListenAddr: ":9090", ClusterWide: true, Kubeconfig: "k", Version: true},
			volumeDir: "/backups", serveAddr: ":20000",
		},
	} {
		got, err := parseFlags(strings.Fields(args), &bytes.Buffer{})
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", args, got, err, want)
		}
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
		{"-version", operator.ExitOK, "etcd-restore-operator Version: ", ""},
		{"-h", operator.ExitOK, "", "-volume-dir"},
		{"-nonsense", operator.ExitUsage, "", "flag provided but not defined: -nonsense"},
		{"-create-crd false", operator.ExitUsage, "", "-create-crd=false"},
		{"", operator.ExitFailed, "", "the environment lacks MY_POD_NAME and MY_POD_NAMESPACE"},
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
