// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etcd-operator/etcd-operator/internal/operator"
	"github.com/etcd-operator/etcd-operator/internal/operator/operatortest"
)

func TestFlagsAndDefaults(t *testing.T) {
	for args, want := range map[string]options{
		"": {Flags: operator.Flags{ListenAddr: "0.0.0.0:8080", CreateCRD: true}, serveAddr: "0.0.0.0:19999"},
		"-listen-addr=:9090 --create-crd=false -cluster-wide -any-scope -kubeconfig k -version -volume-dir /backups -serve-addr :20000": {
			Flags:     operator.Flags{ListenAddr: ":9090", ClusterWide: true, AnyScope: true, Kubeconfig: "k", Version: true},
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
	operatortest.Check(t, operate, []operatortest.Call{
		{Args: "-version", Code: operator.ExitOK, Stdout: "etcd-restore-operator Version: "},
		{Args: "-h", Code: operator.ExitOK, Stderr: "-volume-dir"},
		{Args: "-any-scope", Code: operator.ExitUsage, Stderr: "-any-scope needs -cluster-wide"},
		{Args: "-nonsense", Code: operator.ExitUsage, Stderr: "flag provided but not defined: -nonsense"},
		{Args: "-create-crd false", Code: operator.ExitUsage, Stderr: "-create-crd=false"},
		{Args: "", Code: operator.ExitFailed, Stderr: "the environment lacks MY_POD_NAME and MY_POD_NAMESPACE"},
	})
}
