// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcd-operator/etcd-operator/internal/plugin/access"
	"github.com/etcd-operator/etcd-operator/internal/plugin/hint"
	api "github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
)

const twoClusters = `apiVersion: v1
kind: Config
current-context: staging
contexts:
- {name: staging, context: {cluster: staging, user: me}}
- {name: prod, context: {cluster: prod, user: me, namespace: shop}}
clusters:
- {name: staging, cluster: {server: "https://staging.example:6443"}}
- {name: prod, cluster: {server: "https://prod.example:6443"}}
users:
- {name: me, user: {token: geheim}}
`

// People copy the commands that messages recommend. Both clusters may have an EtcdCluster orders.
func TestARecommendedCommandStaysInTheKubernetesOfTheCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my config")
	if err := os.WriteFile(file, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct{ flags, target string }{
		"":               {"", "staging (https://staging.example:6443)"},
		"--context prod": {" --context=prod", "prod (https://prod.example:6443)"},
		"--context=prod --token geheim --kubeconfig": {" '--kubeconfig=" + file + "' --context=prod", "prod (https://prod.example:6443)"},
		"-s https://other:6443":                      {" --server=https://other:6443", "staging (https://other:6443)"},
	} {
		t.Setenv("KUBECONFIG", file)
		args := append([]string{"doctor"}, strings.Fields(line)...)
		if strings.HasSuffix(line, "--kubeconfig") {
			args = append(args, file)
		}
		app := &App{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}}
		var opened *access.Access
		app.flags.Warnings = io.Discard
		app.Open = func() (a *access.Access, err error) {
			opened, err = app.flags.Open()
			if err != nil {
				t.Error(err)
			}
			return opened, context.Canceled // it asks nobody
		}
		app.Run(t.Context(), args)
		if opened == nil {
			t.Fatalf("%q opens no cluster", args)
		}
		if opened.Target != want.target {
			t.Errorf("%q: the cluster is called %q, want %q", args, opened.Target, want.target)
		}
		if got := hint.Etcd(opened.Place(), "status"); !strings.HasSuffix(got, " -n "+opened.Namespace+want.flags) {
			t.Errorf("%q: the command is %q, want %q at its end", args, got, want.flags)
		}
	}
}

func TestRecommendationsRepeatTheContext(t *testing.T) {
	w := lostQuorum(t, 81503, nightly())
	w.install()
	w.access.Chosen = []string{"--context=prod"}
	w.update(func(c *api.EtcdCluster) { c.Spec.Paused = true })
	recommended := 0
	for _, line := range []string{"status orders", "recover orders", "doctor orders", "logs orders --member nope", "ctl orders --member nope -- get key"} {
		_, out, errOut := w.run(strings.Fields(line)...)
		recommended += strings.Count(out+errOut, "-n default --context=prod")
		for text := range strings.Lines(out + errOut) {
			if strings.Contains(text, "kubectl etcd ") && strings.Contains(text, " -n ") && !strings.Contains(text, "-n default --context=prod") {
				t.Errorf("%s recommends a command for another Kubernetes: %s", line, text)
			}
		}
	}
	if recommended < 8 {
		t.Errorf("only %d commands are recommended", recommended)
	}
}

func TestAQuestionNamesThePlace(t *testing.T) {
	w := newWorld(t, nightly())
	w.access.Target = "prod (https://prod.example:6443)"
	w.in.WriteString("nope\n")
	code, out, _ := w.run("restore", "orders", "--newest")
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	contains(t, out, "The cluster is in the namespace default of the Kubernetes prod (https://prod.example:6443).\nType the name")
}
