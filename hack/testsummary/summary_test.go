// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// offset is a place within a function, which the compiler chooses.
var offset = regexp.MustCompile(` \+0x[0-9a-f]+`)

// The tests in testdata are real ones: their output belongs to Go, and changes with it.
func TestDigest(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/digest.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, paths := range []string{"-trimpath=false", "-trimpath=true"} {
		t.Run(paths, func(t *testing.T) { digests(t, root, string(want), paths) })
	}
}

func digests(t *testing.T, root, want, flag string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "test", "-json", "-fullpath", flag, "-count=1", "-p=1",
		"./testdata/broken", "./testdata/fails", "./testdata/panics")
	events, _ := command.Output() // it fails, as its tests do
	var out, why strings.Builder
	passed, failed, err := newSummary(&out, &why, root, false).read(strings.NewReader(string(events)))
	if err != nil {
		t.Fatal(err)
	}
	if passed != 1 || failed != 10 {
		t.Errorf("got %d passed, %d failed, want 1 and 10", passed, failed)
	}
	if got := offset.ReplaceAllString(why.String(), ""); got != want {
		t.Errorf("got the digest\n%s\nwant\n%s", got, want)
	}
	for _, line := range []string{
		"--- FAIL: TestSubs/fails (", "--- SKIP: TestSubSkips/sub (", "fails_test.go:37: sub failed\n",
		"panic: assignment to entry in nil map", "--- FAIL: TestNotBegun (did not finish)\n",
		"broken_test.go:9:2: undefined: missing\n",
	} {
		if n := strings.Count(out.String(), line); n != 1 {
			t.Errorf("%q stands %d times in\n%s", line, n, &out)
		}
	}
}

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		name           string
		events         string
		passed, failed int
		out            string
	}{
		{name: "nothing"},
		{
			name: "sub-tests count with their test",
			events: `{"Action":"pass","Package":"p","Test":"TestA/one"}
				{"Action":"pass","Package":"p","Test":"TestA"}
				{"Action":"pass","Package":"p","Elapsed":1.5}`,
			passed: 1, out: "PASS  p (1.5s)\n",
		},
		{
			name: "a package that ends without a test",
			events: `{"Action":"output","Package":"p","Output":"no server\n"}
				{"Action":"fail","Package":"p"}`,
			failed: 1, out: "FAIL  p\nno server\n",
		},
		{
			name: "a package with a test that failed",
			events: `{"Action":"fail","Package":"p","Test":"TestA"}
				{"Action":"output","Package":"p","Output":"exit status 1\n"}
				{"Action":"fail","Package":"p"}`,
			failed: 1, out: "FAIL  p\n",
		},
		{
			name: "a test that takes too long",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out after 1s\n"}
				{"Action":"fail","Package":"p"}`,
			failed: 1, out: "FAIL  p\npanic: test timed out after 1s\n--- FAIL: TestA (did not finish)\n",
		},
		{
			name: "a package without tests",
			events: `{"Action":"output","Package":"p","Output":"?   \tp\t[no test files]\n"}
				{"Action":"skip","Package":"p"}`,
		},
		{
			name:   "a slow test",
			events: `{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":41.2}`,
			out:    "     pass TestA/one after 41 s\n",
		},
		{name: "an error of the go command", events: "go: no such tool", out: "go: no such tool\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			passed, failed, err := newSummary(&out, io.Discard, "/root", false).read(strings.NewReader(c.events))
			if err != nil {
				t.Fatal(err)
			}
			if passed != c.passed || failed != c.failed || out.String() != c.out {
				t.Errorf("got %d passed, %d failed, %q; want %d, %d, %q", passed, failed, &out, c.passed, c.failed, c.out)
			}
		})
	}
}

// A run may be cut off before it ends.
func TestAllIsWrittenAsItComes(t *testing.T) {
	const events = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: one\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:2: two\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (9.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":9}
`
	const all = "=== RUN   TestA\n    a_test.go:1: one\n=== NAME  TestB\n    b_test.go:2: two\n--- FAIL: TestA (9.00s)\n"
	var out, why strings.Builder
	end := readerFunc(func() {
		if digest := "TestA (p)\n    a_test.go:1: one\n"; out.String() != all || why.String() != digest {
			t.Errorf("before the end:\n%s\nand the digest\n%s\nwant\n%s\nand\n%s", &out, &why, all, digest)
		}
	})
	if _, _, err := newSummary(&out, &why, "/root", true).read(io.MultiReader(strings.NewReader(events), end)); err != nil {
		t.Fatal(err)
	}
}

type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}
