// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of a build's output
	FailedBuild                   string // why a package failed: the ImportPath of a build
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

// id is a test at the top level, or "" for what belongs to none of a package's.
type id struct{ pkg, test string }

// A test is one at the top level, with its sub-tests, that has not passed yet.
type test struct {
	lines   []line
	names   []string          // its own and those of its sub-tests, as they began
	verdict map[string]string // by name: the last action that tells how it stands
}

type line struct{ test, text string }

// A reading is what is known of the events so far.
type reading struct {
	out    io.Writer
	root   string // the directory that names of files are told relative to
	all    bool   // print all output as it comes
	told   string // the test whose output was printed last
	total  summary
	counts map[string]summary // by package
	tests  map[id]*test
	builds map[string][]line // by what was built
	digest digest
}

func newReading(out, why io.Writer, root string, all bool) *reading {
	return &reading{
		out: out, root: root, all: all,
		counts: map[string]summary{}, tests: map[id]*test{}, builds: map[string][]line{},
		digest: digest{out: why, sources: sources{}, root: root},
	}
}

func (r *reading) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadString('\n')
		if err != nil && text == "" {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		var e event
		if json.Unmarshal([]byte(text), &e) != nil {
			fmt.Fprint(r.out, text) // what go itself says
			continue
		}
		r.take(e)
	}
}

func (r *reading) take(e event) {
	top, _, sub := strings.Cut(e.Test, "/")
	key := id{e.Package, top}
	t := r.tests[key]
	if t == nil {
		t = &test{verdict: map[string]string{}}
	}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], line{text: e.Output})
		return
	case "output":
		r.tests[key] = t
		t.lines = append(t.lines, line{e.Test, e.Output})
		if r.all {
			r.show(e)
		}
		return
	case "run", "pause", "cont", "pass", "fail", "skip":
		if e.Test != "" && t.verdict[e.Test] == "" {
			t.names = append(t.names, e.Test)
		}
		t.verdict[e.Test] = e.Action
		r.tests[key] = t
	}
	switch e.Action {
	case "pass", "fail", "skip":
	default:
		return
	}
	if e.Test != "" && e.Elapsed >= slow && !r.all {
		fmt.Fprintf(r.out, "     %s %s after %.0f s\n", e.Action, e.Test, e.Elapsed)
	}
	switch {
	case sub && e.Action == "skip":
		r.total.skipped++
		if !r.all {
			fmt.Fprintf(r.out, "--- SKIP: %s\n", e.Test)
		}
		r.digest.add(e.Package, e.Test, t.of(e.Test))
	case sub:
	case top == "":
		r.finish(e)
	default:
		r.end(key, t, e.Action)
	}
}

// show prints output as it comes, and whose it is when it is another's.
func (r *reading) show(e event) {
	marker := strings.HasPrefix(e.Output, "=== ") || strings.HasPrefix(e.Output, "--- ")
	if e.Test != r.told && e.Test != "" && !marker {
		fmt.Fprintf(r.out, "=== NAME  %s\n", e.Test)
	}
	r.told = e.Test
	fmt.Fprint(r.out, r.short(e.Output))
}

// end counts a test at the top level and tells why it failed.
func (r *reading) end(key id, t *test, action string) {
	counts := r.counts[key.pkg]
	switch action {
	case "pass":
		counts.passed++
	case "skip":
		counts.skipped++
	case "fail":
		counts.failed++
	}
	r.counts[key.pkg] = counts
	delete(r.tests, key)
	if action == "pass" {
		return
	}
	r.print(t)
	r.digest.addFailed(key.pkg, t)
}

// print prints the output of a test, unless it was printed as it came.
func (r *reading) print(t *test) {
	if r.all {
		return
	}
	for _, l := range t.lines {
		fmt.Fprint(r.out, r.short(l.text))
	}
}

// short tells files relative to the root. (go test -fullpath tells them from the top,
// so that they can be looked at.)
func (r *reading) short(text string) string { return strings.ReplaceAll(text, r.root+"/", "") }

// finish adds a package to the total.
func (r *reading) finish(e event) {
	counts, verdict := r.counts[e.Package], "ok  "
	if e.Action == "fail" {
		verdict = "FAIL"
		blamed := counts.failed > 0
		// A test that was running when the package ended has no verdict of its own.
		for _, key := range r.unfinished(e.Package) {
			r.print(r.tests[key])
			if r.digest.addFailed(e.Package, r.tests[key]) {
				blamed = true
			}
		}
		if build := r.builds[e.FailedBuild]; e.FailedBuild != "" {
			r.print(&test{lines: build})
			if len(build) > 0 { // many packages may fail by the same build
				r.digest.addBuild(e.FailedBuild, build)
			}
			delete(r.builds, e.FailedBuild)
			blamed = true
		}
		if rest := r.tests[id{pkg: e.Package}]; rest != nil {
			r.print(rest)
			if !blamed || panics(rest.lines) {
				r.digest.add(e.Package, "", rest.lines)
			}
		}
		if counts.failed == 0 {
			counts.failed++
		}
	}
	maps.DeleteFunc(r.tests, func(key id, _ *test) bool { return key.pkg == e.Package })
	if counts != (summary{}) {
		fmt.Fprintf(r.out, "%s %-70s %3d tests %7.1f s\n", verdict, e.Package, counts.passed+counts.failed+counts.skipped, e.Elapsed)
	}
	r.total.passed += counts.passed
	r.total.failed += counts.failed
	r.total.skipped += counts.skipped
}

// unfinished are the tests of a package that have no verdict.
func (r *reading) unfinished(pkg string) []id {
	keys := slices.Collect(maps.Keys(r.tests))
	keys = slices.DeleteFunc(keys, func(key id) bool { return key.pkg != pkg || key.test == "" })
	slices.SortFunc(keys, func(a, b id) int { return cmp.Compare(a.test, b.test) })
	return keys
}
