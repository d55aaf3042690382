// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command testsummary reads the output of `go test -json` and prints what a person
// wants of it: a line for each package, all output of what failed, and the number of
// tests. It fails if a test failed or was skipped, or if there was none.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	s, err := summarize(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	fmt.Println(s)
	if s.failed > 0 || s.skipped > 0 || s.passed == 0 {
		os.Exit(1)
	}
}

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a build's output
	Elapsed                       float64
}

// slow tests have a line of their own as soon as they end, in seconds.
const slow = 5

// summary counts tests at the top level, and packages that failed without a test to
// blame, such as one that does not compile.
type summary struct{ passed, failed, skipped int }

func (s summary) String() string {
	text := fmt.Sprintf("%d passed, %d failed", s.passed, s.failed)
	if s.skipped > 0 {
		text += fmt.Sprintf(", %d skipped (a test that can't run has failed)", s.skipped)
	}
	return text
}

func summarize(in io.Reader, out io.Writer) (summary, error) {
	var total summary
	packages := map[string]summary{}
	output := map[[2]string][]string{} // by package and test at the top level
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil && line == "" {
			if err == io.EOF {
				err = nil
			}
			return total, err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(out, line) // what go itself says
			continue
		}
		if e.Package == "" {
			e.Package = e.ImportPath
		}
		test, _, sub := strings.Cut(e.Test, "/")
		key := [2]string{e.Package, test}
		switch e.Action {
		case "output", "build-output":
			output[key] = append(output[key], e.Output)
			continue
		case "pass", "fail", "skip":
		default:
			continue
		}
		if e.Test != "" && e.Elapsed >= slow {
			fmt.Fprintf(out, "     %s %s after %.0f s\n", e.Action, e.Test, e.Elapsed)
		}
		if sub {
			if e.Action == "skip" {
				total.skipped++
				fmt.Fprintf(out, "--- SKIP: %s\n", e.Test)
			}
			continue
		}
		p := packages[e.Package]
		if test == "" {
			total = finish(out, e, p, output, total)
			continue
		}
		switch e.Action {
		case "pass":
			p.passed++
			delete(output, key)
		case "skip":
			p.skipped++
			fmt.Fprint(out, strings.Join(output[key], ""))
		case "fail":
			p.failed++
			fmt.Fprint(out, strings.Join(output[key], ""))
			delete(output, key)
		}
		packages[e.Package] = p
	}
}

// finish adds a package to the total.
func finish(out io.Writer, e event, p summary, output map[[2]string][]string, total summary) summary {
	verdict := "ok  "
	if e.Action == "fail" {
		verdict = "FAIL"
		// A test that was running when the package ended has no verdict of its own.
		for _, key := range slices.SortedFunc(maps.Keys(output), func(a, b [2]string) int { return strings.Compare(a[1], b[1]) }) {
			if key[0] == e.Package {
				fmt.Fprint(out, strings.Join(output[key], ""))
			}
		}
		if p.failed == 0 {
			p.failed++
		}
	}
	maps.DeleteFunc(output, func(key [2]string, _ []string) bool { return key[0] == e.Package })
	if p != (summary{}) {
		fmt.Fprintf(out, "%s %-70s %3d tests %7.1f s\n", verdict, e.Package, p.passed+p.failed+p.skipped, e.Elapsed)
	}
	return summary{total.passed + p.passed, total.failed + p.failed, total.skipped + p.skipped}
}
