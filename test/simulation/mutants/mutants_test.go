// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutants holds patches that reintroduce defects. Its tests check that each patch
// applies to the current code, and names a test or a simulation that finds it. hack/mutants
// and hack/simulate -mutants run those.
package mutants

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

var (
	unitLine  = regexp.MustCompile(`(?m)^Unit: go test (\./\S+) -run '\^(Test\w+)\$(?:/\^(\w+)\$)?'$`)
	seedsLine = regexp.MustCompile(`(?m)^Found within: ([1-9]\d*) seeds$`)
	livesLine = regexp.MustCompile(`(?m)^Lives: (.*)$`)
)

// patches returns the heads of all patches, by name.
func patches(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.patch")
	if err != nil || len(files) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	heads := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(text), "\n--- a/")
		head, _, _ = strings.Cut(head, "\ndiff --git ")
		heads[strings.TrimSuffix(file, ".patch")] = head
	}
	return heads
}

func TestPatchesApply(t *testing.T) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range patches(t) {
		cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "apply", "--check", filepath.Join("test/simulation/mutants", name+".patch"))
		// In a repository that contains this tree, git would skip the files outside of it.
		cmd.Dir, cmd.Env = absolute, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(absolute))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s no longer applies: bring it up to date, or delete it where its defect can't come back: %v\n%s", name, err, out)
		}
	}
}

func TestPatchesNameWhatFindsThem(t *testing.T) {
	for name, head := range patches(t) {
		if !seedsLine.MatchString(head) && !strings.Contains(head, "\nUnit: ") {
			t.Errorf("%s names neither a unit test nor a number of seeds", name)
		}
		if lives := livesLine.FindStringSubmatch(head); lives != nil && (!seedsLine.MatchString(head) || !declares(t, "..", lives[1])) {
			t.Errorf("%s: the line Lives needs the line Found within, and a test of the simulation: %q", name, lives[1])
		}
		if !strings.Contains(head, "\nUnit: ") {
			continue
		}
		unit := unitLine.FindStringSubmatch(head)
		if unit == nil {
			t.Errorf("%s: the line Unit is not of the form: Unit: go test ./DIRECTORY -run '^TestX$' or '^TestX$/^y$'", name)
			continue
		}
		if dir := filepath.Join(root, unit[1]); !declares(t, dir, unit[2]) {
			t.Errorf("%s: %s has no %s", name, unit[1], unit[2])
		}
		if unit[2] == "TestPlan" && strings.HasSuffix(unit[1], "pkg/cluster") {
			if _, err := os.Stat(filepath.Join(root, unit[1], "testdata/plan", unit[3]+".txt")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// declares reports whether a test of a package has this name.
func declares(t *testing.T, dir, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}

func TestTheTableNamesEachUnitTest(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## Found by unit tests\n")
	table, _, _ = strings.Cut(table, "\n## ")
	want := 0
	for name, head := range patches(t) {
		unit := unitLine.FindStringSubmatch(head)
		if unit == nil {
			continue
		}
		want++
		test := unit[2]
		if unit[3] != "" {
			test += "/" + unit[3]
		}
		row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\| .+ \\| `%s`, %s \\|$", name, test, unit[1]))
		if !row.MatchString(table) {
			t.Errorf("README.md has no row of %s with `%s`, %s", name, test, unit[1])
		}
	}
	if rows := strings.Count(table, "\n| `"); rows != want {
		t.Errorf("README.md has %d rows, and %d patches name a unit test", rows, want)
	}
}

func TestTheTableNamesEachNumberOfSeeds(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n## Found by the simulation\n")
	table, _, _ = strings.Cut(table, "\n## ")
	want := 0
	for name, head := range patches(t) {
		seeds := seedsLine.FindStringSubmatch(head)
		if seeds == nil {
			continue
		}
		want++
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| `+"`%s`"+` \| .+ \| [1-9]\d* \| %s \|$`, name, seeds[1]))
		if !row.MatchString(table) {
			t.Errorf("README.md has no row of %s with %s seeds", name, seeds[1])
		}
	}
	if rows := strings.Count(table, "\n| `"); rows != want {
		t.Errorf("README.md has %d rows, and %d patches state a number of seeds", rows, want)
	}
}
