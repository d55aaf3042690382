// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package affected tests that hack/affected chooses the stages of hack/test that a change may
// have broken.
package affected

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// A checkout is a repository with only the scripts, in one commit.
type checkout string

func newCheckout(t *testing.T) checkout {
	t.Helper()
	c := checkout(t.TempDir())
	for _, script := range []string{"hack/affected", "hack/test", "hack/process.sh", "hack/debian.sh", "hack/environment.sh", "hack/tripwire.sh"} {
		text, err := os.ReadFile(filepath.Join(root, script))
		if err != nil {
			t.Fatal(err)
		}
		c.write(t, script, string(text))
	}
	c.git(t, "init", "-q", "-b", "main")
	c.commit(t)
	return c
}

func (c checkout) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(string(c), name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (c checkout) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", string(c), "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (c checkout) commit(t *testing.T) {
	t.Helper()
	c.git(t, "add", "-A")
	c.git(t, "commit", "-q", "-m", "a change")
}

// affected runs hack/affected and returns the stages that it prints.
func (c checkout) affected(t *testing.T, args ...string) (stages string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(string(c), "hack/affected"), args...).CombinedOutput()
	if err != nil {
		return string(out), err
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		names = append(names, strings.Fields(line)[0])
	}
	return strings.Join(names, " "), nil
}

const everything = "format scripts prose docs e2e localkube alone demo chaos stores modules generated lint monitoring mutants site unit"

func TestStagesOfAFile(t *testing.T) {
	c := newCheckout(t)
	for file, want := range map[string]string{
		"pkg/cluster/plan/plan.go":                "format prose docs e2e alone demo chaos stores modules generated lint monitoring mutants unit",
		"pkg/cluster/plan_test.go":                "format prose modules lint unit",
		"internal/plugin/command/app.go":          "format prose docs e2e modules generated lint unit",
		"cmd/kubectl-etcd/main.go":                "format prose docs e2e modules generated lint unit",
		"internal/plugin/command/a_test.go":       "format prose modules lint unit",
		"pkg/store/s3/s3_test.go":                 "format prose stores modules lint unit",
		"test/e2e/create_test.go":                 "format prose e2e alone modules lint unit",
		"test/simulation/mutants/a.patch":         "format modules lint mutants unit",
		"hack/simulate":                           "scripts mutants unit",
		"hack/chaos":                              "scripts chaos unit",
		"test/chaos/storm_test.go":                "format prose chaos modules lint unit",
		"test/harness/cluster.go":                 everything,
		"hack/localkube/keeper/keeper.go":         everything,
		"hack/localkube/smoke/dns_test.go":        "format prose localkube modules lint unit",
		"hack/localkube/environ/of_test.go":       "format prose modules lint unit",
		"pkg/apis/etcd/v1beta2/cluster.go":        "format prose docs e2e alone demo chaos stores modules generated lint monitoring mutants unit",
		"doc/tls.md":                              "prose docs site unit",
		"doc/reference.md":                        "prose docs generated site unit",
		"CHANGELOG.md":                            "prose site unit",
		"example/README.md":                       "scripts prose docs e2e alone demo unit",
		"hack/reference/flags.go":                 "format prose modules generated lint unit",
		"example/tls/certs.sh":                    "scripts docs e2e alone demo unit",
		"hack/demo":                               "scripts docs demo unit",
		"hack/mutants":                            "scripts mutants unit",
		"hack/lint":                               "scripts lint unit",
		"hack/helm":                               "scripts docs unit",
		"hack/release":                            "scripts unit",
		"hack/releaser/sbom.go":                   "format prose modules lint unit",
		"hack/manifests/derive.go":                "format prose docs modules generated lint unit",
		"deploy/namespaced/x.yaml":                "docs generated unit",
		"charts/etcd-operator/values.yaml":        "docs generated unit",
		"hack/prose/rules.go":                     "format prose modules lint unit",
		"hack/docsite/page.go":                    "format prose modules lint site unit",
		"hack/grid":                               "scripts unit",
		"hack/localkube/pins/kubernetes/1.34.mod": "unit",
		"go.mod":            everything,
		"what/nobody/knows": everything,
	} {
		c.write(t, file, "new\n")
		if got, err := c.affected(t); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
		c.git(t, "clean", "-fdq")
	}
}

func TestTestsOfAPackageThatNeedMoreThanTheCompiler(t *testing.T) {
	c := newCheckout(t)
	for tag, want := range map[string]string{
		"e2e":    "format prose e2e modules lint unit",
		"stores": "format prose stores modules lint unit",
	} {
		c.write(t, "pkg/cluster/a_test.go", "// Copyright\n\n//go:build "+tag+"\n\npackage cluster\n")
		if got, err := c.affected(t); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", tag, got, err, want)
		}
	}
}

func TestWhatCountsAsTheChange(t *testing.T) {
	c := newCheckout(t)
	c.write(t, "doc/a.md", "a\n")
	c.write(t, "hack/bench", "a\n")
	c.commit(t)
	c.git(t, "checkout", "-q", "-b", "mine")
	check := func(about, want string, args ...string) {
		t.Helper()
		if got, err := c.affected(t, args...); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", about, got, err, want)
		}
	}
	check("nothing", "")
	c.write(t, ".golangci.yml", "a\n")
	check("a new file", "lint")
	c.commit(t)
	check("a commit of the branch", "lint")
	check("since that commit", "", "HEAD")
	c.git(t, "rm", "-q", "hack/bench")
	check("a deleted file", "scripts lint unit")
	check("a deleted file, since the commit", "scripts unit", "HEAD")
	c.git(t, "mv", "doc/a.md", ".editorconfig")
	check("a file that was renamed", "scripts prose docs site unit", "HEAD")
	check("since another commit", "lint unit", "main~1")

	c.git(t, "checkout", "-q", "-f", "--orphan", "other")
	c.commit(t)
	if out, err := c.affected(t); err == nil || !strings.Contains(out, "no commit in common") {
		t.Errorf("without a common commit: %q, %v", out, err)
	}
	for arg, want := range map[string]string{"nothing": "is no commit", "--nothing": "unknown argument"} {
		if out, err := c.affected(t, arg); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v", arg, out, err)
		}
	}
}

// The stages that hack/affected names are stages of hack/test.
func TestEveryFileOfTheRepositoryHasStages(t *testing.T) {
	files, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "-C", root, "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	c := newCheckout(t)
	for file := range strings.Lines(string(files)) {
		c.write(t, strings.TrimSpace(file), "new\n")
	}
	c.git(t, "checkout", "-q", "hack")
	if got, err := c.affected(t); err != nil || got != everything {
		t.Errorf("%q, %v, want %q", got, err, everything)
	}
}
