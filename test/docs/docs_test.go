//go:build e2e

// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/etcd-operator/etcd-operator/test/harness"
)

// The test types each page from top to end, several pages at a time: each has a namespace of
// its own.
func TestPage(t *testing.T) {
	list, err := pages(root)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]block{}
	for _, page := range list {
		if all[page], err = blocks(root, page); err != nil {
			t.Fatal(err)
		}
	}
	// Of parallel tests, the testing package begins with the last. A long page that begins late holds up all.
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(len(all[a]), len(all[b])) })
	for _, page := range list {
		t.Run(page, func(t *testing.T) {
			if !needsAll(page) {
				t.Parallel()
			}
			typePage(t, page, all[page])
		})
	}
}

// needsAll reports whether a page must run alone: it starts operators that manage all namespaces.
func needsAll(page string) bool {
	return page == "doc/cluster-wide.md" || page == "doc/user/install.md"
}

func typePage(t *testing.T, page string, found []block) {
	var user, local *session
	var refusal *string // the output of a command that had to fail
	for _, b := range found {
		var s *session
		switch b.kind {
		case "sh", "sh fails", "yaml":
			if user == nil {
				user = newUserSession(t, page)
			}
			s = user
		case "sh local":
			if local == nil {
				local = newLocalSession(t)
			}
			s = local
		default:
			if want := strings.TrimSpace(b.text); refusal != nil && !strings.Contains(*refusal, want) {
				t.Errorf("%s: the command before failed with\n%s", b, *refusal)
			}
			refusal = nil
			continue
		}
		refusal = nil
		if b.kind == "yaml" {
			b.text = "kubectl apply --dry-run=server -f - <<'MANIFEST'\n" + b.text + "MANIFEST"
		}
		began := time.Now()
		output, err := s.run(b)
		told := fmt.Sprintf("%s, %.0f s\n%s\n%s", b, time.Since(began).Seconds(), strings.TrimSpace(b.text), output)
		// A block that hangs, or ends the shell, does not count as failing.
		var code exitCode
		failed := errors.As(err, &code)
		if err != nil && !failed || failed != (b.kind == "sh fails") {
			t.Fatalf("kind %q ended with %v: %s", b.kind, err, told)
		}
		if failed {
			refusal = &output
		}
		t.Log(told)
	}
}

// newUserSession is the session of a user with a kubeconfig and an empty namespace.
func newUserSession(t *testing.T, page string) *session {
	n := harness.NewNamespace(t)
	n.ForgetRoles()
	own, err := harness.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(own)
	if err != nil {
		t.Fatal(err)
	}
	config.Contexts[config.CurrentContext].Namespace = n.Name
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	// create_role.sh takes its names from here: it creates objects without a namespace, and so
	// do other tests.
	environment := []string{"KUBECONFIG=" + file, "NAMESPACE=" + n.Name, "ROLE_NAME=" + n.Name, "ROLE_BINDING_NAME=" + n.Name}
	if start := storeOfPage[page]; start != nil {
		environment = append(environment, start(t, n.HostIP(t))...)
	}
	return newSession(t, treeOf(t, page), append(environment, "PATH="+helmFirst(t))...)
}

// helmFirst returns a PATH on which helm is the one of hack/helm.
func helmFirst(t *testing.T) string {
	helm, err := filepath.Abs(filepath.Join(root, "hack", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	if err := os.Symlink(helm, filepath.Join(directory, "helm")); err != nil {
		t.Fatal(err)
	}
	return directory + string(os.PathListSeparator) + os.Getenv("PATH")
}

// newLocalSession is the session of a user who starts a local Kubernetes, beside the one of
// the tests.
func newLocalSession(t *testing.T) *session {
	environment := []string{"LOCALKUBE_NAME=pages", "LOCALKUBE_NETWORK=10.107.0.0/16", "KUBECONFIG=/dev/null"}
	t.Cleanup(func() {
		// The test's own context has ended by then.
		down := exec.CommandContext(context.WithoutCancel(t.Context()), "hack/kube", "down")
		down.Dir, down.Env = root, append(os.Environ(), environment...)
		if output, err := down.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", down, err, output)
		}
	})
	return newSession(t, root, environment...)
}
