// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func messages(findings []finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, fmt.Sprintf("%d: %s", f.line, f.message))
	}
	return strings.Join(lines, "\n")
}

// Each sentence breaks one rule, and the message has these words.
func TestWhatThePagesMustNotSay(t *testing.T) {
	for sentence, want := range map[string]string{
		"The status tells which member it is.":                             "report",
		"Pods were told of it.":                                            "report",
		"If the backup can't be had, edit the spec.":                       "unavailable",
		"The operator makes the pod anew.":                                 "recreate",
		"A pod, made again, is new.":                                       "recreated",
		"It waits for ever.":                                               "forever",
		"Leave the flag away.":                                             "omit",
		"The name stands in the status.":                                   "contains",
		"A replica that stands by has no metrics.":                         "standby",
		"The operator takes care of clusters.":                             "manage",
		"The operator gives the backup to who has the token.":              "to the client",
		"The pod is deleted.":                                              "passive",
		"The pods are then all removed.":                                   "passive",
		"The member has been automatically replaced.":                      "passive",
		"The cluster is managed by the operator.":                          "passive",
		"What is lost with a member does not come back.":                   "clause as the subject",
		strings.Repeat("word ", 26) + "ends.":                              "a sentence of 27 words",
		"Short. A " + strings.Repeat("word ", 25) + "ends. Short.":         "a sentence of 27 words",
		"The message says e.g. that the quota is full.":                    "for example",
		"If a Service is missing, it was deleted (by a person).":           "passive",
		"**The status tells** which member it is.":                         "report",
		"The [status tells](status.md#told) which one.":                    "report",
		"| Field | Meaning |\n|---|---|\n| `a` | The member is deleted. |": "passive",
		"- The member is deleted.":                                         "passive",
		"# What we told you":                                               "report",
		"One line of a paragraph\nand another one.":                        "do not wrap",
		"- One line of an item\n  and another one.":                        "do not wrap",
	} {
		findings := []finding{}
		for _, p := range readMarkdown([]byte(sentence + "\n")) {
			findings = append(findings, check(p)...)
		}
		if len(findings) != 1 || !strings.Contains(findings[0].message, want) {
			t.Errorf("%q: want one finding with %q, got\n%s", sentence, want, messages(findings))
		}
	}
}

func TestWhatThePagesMaySay(t *testing.T) {
	for _, text := range []string{
		"The operator reports whether a quorum serves.",
		"A member is lost if its volume is gone. The field is required and deprecated.",
		"What do I do if a member is Pending?",
		"# When a member is deleted",
		"Run `kubectl tells for ever` and `is deleted`.",
		"```text\nThis is told for ever\nand wraps.\n```",
		"<!-- This is told for ever. -->",
		"[The status](told-anew.md) shows the member.",
		strings.Repeat("word ", 24) + "ends. etcd starts.",
		strings.Repeat("word ", 24) + "ends. `etcd` starts.",
		strings.Repeat("word ", 23) + "ends: **Yes**.\n\n" + strings.Repeat("word ", 24) + "ends.",
		strings.Repeat("word ", 24) + "`--a=b c d`.",
		strings.Repeat("word – ", 24) + "ends.",
		strings.Repeat("word ", 12) + "v3.6.1 " + strings.Repeat("word ", 11) + "ends.",
		"| " + strings.Repeat("word ", 20) + "| " + strings.Repeat("word ", 20) + "|\n|---|---|\n",
	} {
		for _, p := range readMarkdown([]byte(text + "\n")) {
			if findings := check(p); len(findings) > 0 {
				t.Errorf("%q: %s", text, messages(findings))
			}
		}
	}
}

func TestLinesOfFindings(t *testing.T) {
	page := "# Page\n\nFine.\n\n| a | b |\n|---|---|\n| fine | fine |\n| fine | told |\n\n- fine\n- `code` told\n"
	var lines []int
	for _, p := range readMarkdown([]byte(page)) {
		for _, f := range check(p) {
			lines = append(lines, f.line)
		}
	}
	if fmt.Sprint(lines) != "[8 11]" {
		t.Errorf("findings in lines %v, want 8 and 11", lines)
	}
}

func TestComments(t *testing.T) {
	const source = `// Package a tells nothing.
package a

// Kind is fine.
//
//	indented code is told
//
// Names are told.
type Kind struct {
	// Where the 'told' member
	// is deleted.
	// +optional is told
	Name string // told as well
}

// F is fine.
func F() {
	// This is told to nobody but readers of the code.
	var told int
	_ = told
}

const (
	// A is told.
	A = 1
)
`
	passages, err := readComments([]byte(strings.ReplaceAll(source, "'", "`")))
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(passages, check)
	if want := "[1 8 10 13 24]"; fmt.Sprint(lines) != want {
		t.Errorf("findings in lines %v, want %s", lines, want)
	}
}

func TestCode(t *testing.T) {
	const source = `// Package a tells nothing.
package a

func tells() error { // told
	log("member told to leave: %w")
	// A is deleted: that is passive, which is fine here.
	event("told", 'The raw
string is told.')
	return nil
}

var told = "fine"

// told is a name here, and a verb if it is told here.
func told() {}

// tell is a name here.
type tell int

// Nothing tells its name.
func fine() {}
`
	passages, err := readCode([]byte(strings.ReplaceAll(source, "'", "`")), true)
	if err != nil {
		t.Fatal(err)
	}
	lines := linesOf(passages, checkPhrases)
	if want := "[1 4 5 7 14 20]"; fmt.Sprint(lines) != want {
		t.Errorf("findings in lines %v, want %s", lines, want)
	}
}

func TestRun(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(about string, wantClean bool, want string, files ...string) {
		t.Helper()
		var out strings.Builder
		clean, err := run(root, files, &out)
		if err != nil || clean != wantClean || !strings.Contains(out.String(), want) {
			t.Errorf("%s: clean %t, error %v, want clean %t and %q in\n%s", about, clean, err, wantClean, want, out.String())
		}
	}
	write("README.md", "It serves.\n")
	write("doc/page.md", "It reports.\n")
	write(".hidden/bad.md", "It is told.\n")
	write("pkg/x/testdata/bad.md", "It is told.\n")
	write("pkg/apis/x/v1/types.go", "package v1\n\n// T is fine.\ntype T int\n")
	write("pkg/apis/x/v1/zz_generated.a.go", "package v1\n\n// T is told.\ntype T int\n")
	expect("plain pages", true, "3 files, 3 sentences\n")
	write("doc/page.md", "It is told.\n")
	expect("a page", false, "doc/page.md:1: instead of")
	expect("a page that was named", false, "doc/page.md:1: instead of", "doc/page.md")
	expect("another page that was named", true, "1 files, 1 sentences", "README.md")
	write("doc/page.md", "It reports.\n")
	write("pkg/apis/x/v1/types.go", "package v1\n\n// T is told.\ntype T int\n")
	expect("a comment", false, "pkg/apis/x/v1/types.go:3: instead of")
	write("pkg/apis/x/v1/types.go", "package v1\n\n// T is fine.\ntype T int\n")
	write("pkg/a/a.go", "package a\n\nfunc a() {\n\t// Nobody is told.\n}\n")
	expect("a comment in a function", false, "pkg/a/a.go:4: instead of")
	if _, err := run(root, []string{"go.mod"}, &strings.Builder{}); err == nil {
		t.Error("a file that is no page passes")
	}
}

// linesOf are the lines of what a check finds in passages.
func linesOf(passages []passage, check func(passage) []finding) []int {
	var lines []int
	for _, p := range passages {
		for _, f := range check(p) {
			lines = append(lines, f.line)
		}
	}
	return lines
}
