//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcd-operator/etcd-operator/internal/plugin/command"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

// kubectlEtcd runs a command of the plugin in a namespace.
func kubectlEtcd(t *testing.T, n *harness.Namespace, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	kubeconfig, err := harness.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	args = append([]string{"--kubeconfig", kubeconfig, "-n", n.Name}, args...)
	code = command.Main(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return code, out.String(), errOut.String()
}

// mustKubectlEtcd runs a command of the plugin that must succeed and print some text.
func mustKubectlEtcd(t *testing.T, n *harness.Namespace, want string, args ...string) string {
	t.Helper()
	code, out, errOut := kubectlEtcd(t, n, args...)
	if code != 0 || !strings.Contains(out, want) {
		t.Fatalf("kubectl etcd %s: exit code %d, want 0 and %q\n%s%s", strings.Join(args, " "), code, want, out, errOut)
	}
	return out
}

// waitKubectlEtcd is mustKubectlEtcd for a command that only looks. A member that misses one
// look on a busy machine is no defect.
func waitKubectlEtcd(t *testing.T, n *harness.Namespace, want string, args ...string) {
	t.Helper()
	command := "kubectl etcd " + strings.Join(args, " ")
	harness.Wait(t, command, harness.Settle, func(context.Context) error {
		code, out, errOut := kubectlEtcd(t, n, args...)
		if code != 0 || !strings.Contains(out, want) {
			return fmt.Errorf("%s: exit code %d, want 0 and %q\n%s%s", command, code, want, out, errOut)
		}
		return nil
	})
}

// The plugin shows a cluster and what is wrong with it, replaces its leader while
// clients write, and backs it up. Its report contains no credential and no value of etcd.
func TestPlugin(t *testing.T) {
	t.Parallel()
	b := newBackups(t, nil)
	b.setCredentials(b.minio.SecretKey)
	spec := b.spec("nightly")
	spec.BackupPolicy = &v1beta2.BackupPolicy{Schedule: "0 3 * * *", MaxBackups: 3}
	b.CreateBackup("nightly", spec)
	n, name := b.Namespace, b.cluster.Name

	waitKubectlEtcd(t, n, "3 of 3 voters healthy", "status", name)
	const value = "a-value-that-no-report-shows"
	mustKubectlEtcd(t, n, "OK", "ctl", name, "--", "put", "greeting", value)
	mustKubectlEtcd(t, n, value, "ctl", name, "--", "get", "greeting")
	members := strings.Fields(mustKubectlEtcd(t, n, "pod/", "members", name, "-o", "name"))
	if len(members) != 3 {
		t.Errorf("the members are %q", members)
	}
	waitKubectlEtcd(t, n, "ok    quorum: 3 of 3 voters", "doctor", name)

	writer := b.cluster.StartWriter()
	pluginShowsALostMember(t, b)
	pluginReplacesTheLeader(t, b)
	b.cluster.VerifyWrites(writer)

	mustKubectlEtcd(t, n, ": revision ", "backup", name)
	mustKubectlEtcd(t, n, "nightly-manual-", "backups", name)
	mustKubectlEtcd(t, n, "kind: EtcdRestore", "restore", name, "--newest", "--dry-run")
	pluginReportsNoSecret(t, n, name, b.minio.SecretKey, value)
}

// pluginShowsALostMember takes a member from a cluster that the operator must not touch.
func pluginShowsALostMember(t *testing.T, b *backups) {
	t.Helper()
	n, name := b.Namespace, b.cluster.Name
	mustKubectlEtcd(t, n, "paused", "pause", name)
	lost := b.cluster.Follower()
	n.DeletePod(lost)
	harness.Wait(t, "the plugin's view of the lost member", harness.Settle, func(context.Context) error {
		code, out, errOut := kubectlEtcd(t, n, "status", name)
		if code != 1 || !strings.Contains(out, lost.Name+": it has no pod") || !strings.Contains(out, "PAUSED") {
			return fmt.Errorf("status: exit code %d, want 1\n%s%s", code, out, errOut)
		}
		return nil
	})
	waitKubectlEtcd(t, n, "WARN  quorum: "+lost.Name+": it has no pod", "doctor", name)
	if code, out, errOut := kubectlEtcd(t, n, "replace", b.cluster.Leader().Name); code != 1 || !strings.Contains(errOut, "is not replaced") {
		t.Errorf("replace of one of two members: exit code %d\n%s%s", code, out, errOut)
	}
	mustKubectlEtcd(t, n, "resumed", "resume", name)
	b.cluster.WaitSettled(lost)
}

// pluginReplacesTheLeader tries again if a member has missed the only look before the deletion,
// or if the member did not lead any more.
func pluginReplacesTheLeader(t *testing.T, b *backups) {
	t.Helper()
	harness.Wait(t, "the replacement of a leader", harness.Settle, func(context.Context) error {
		leader := b.cluster.Leader()
		code, out, errOut := kubectlEtcd(t, b.Namespace, "replace", leader.Name)
		deleted := strings.Contains(out, "pod/"+leader.Name+" deleted")
		moved := strings.Contains(out, "in place of "+leader.Name)
		if deleted && code != 0 {
			t.Fatalf("replace %s: exit code %d\n%s%s", leader.Name, code, out, errOut)
		}
		if deleted {
			b.cluster.WaitSettled(leader)
		}
		if !deleted || !moved {
			return fmt.Errorf("replace %s: deleted: %t, moved: %t, exit code %d\n%s%s", leader.Name, deleted, moved, code, out, errOut)
		}
		return nil
	})
}

func pluginReportsNoSecret(t *testing.T, n *harness.Namespace, name string, secrets ...string) {
	t.Helper()
	content := mustKubectlEtcd(t, n, "", "report", name, "-f", "-")
	compressed, err := gzip.NewReader(strings.NewReader(content))
	if err != nil {
		t.Fatalf("read the report: %v", err)
	}
	files := 0
	for archive := tar.NewReader(compressed); ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read the report: %v", err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatalf("read the report: %v", err)
		}
		for _, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("the report's %s contains %q", header.Name, secret)
			}
		}
		if strings.HasSuffix(header.Name, ".error") {
			t.Errorf("the report lacks a part: %s: %s", header.Name, text)
		}
	}
	if files < 15 {
		t.Errorf("the report has %d files", files)
	}
}
