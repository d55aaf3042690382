// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// slow is the duration in seconds from which a test gets a line of its own.
const slow = 5

// A summary prints events, and writes the digest, as they come.
type summary struct {
	out    io.Writer
	all    bool
	shown  string // the test whose output was printed last
	format testjson.EventFormatter
	digest *digest
}

func newSummary(out, why io.Writer, root string, all bool) *summary {
	options := testjson.FormatOptions{HideEmptyPackages: true, Icons: "text"}
	format := testjson.NewEventFormatter(out, "pkgname-and-test-fails", options)
	return &summary{out: out, all: all, format: format, digest: newDigest(why, root)}
}

// read handles all events. It counts tests without their sub-tests. A skipped test has failed,
// and so has one with a skipped sub-test, and a package that failed without a failed test.
func (s *summary) read(events io.Reader) (passed, failed int, err error) {
	config := testjson.ScanConfig{Stdout: events, Handler: s, IgnoreNonJSONOutputLines: true}
	x, err := testjson.ScanTestOutput(config)
	for _, name := range x.Packages() {
		pkg, bad := x.Package(name), map[string]bool{}
		for _, test := range slices.Concat(pkg.Failed, pkg.Skipped) {
			root, _ := test.Test.Split()
			bad[root] = true
		}
		if len(bad) == 0 && pkg.Result() == testjson.ActionFail {
			bad[""] = true
		}
		failed += len(bad)
		for _, test := range pkg.Passed {
			if !test.Test.IsSubTest() && !bad[test.Test.Name()] {
				passed++
			}
		}
	}
	return passed, failed, err
}

// Err prints a line that is no event, such as an error of the go command.
func (s *summary) Err(line string) error {
	_, err := fmt.Fprintln(s.out, line)
	return err
}

// Event prints an event and adds a failure to the digest.
func (s *summary) Event(e testjson.TestEvent, x *testjson.Execution) error {
	if s.all {
		s.stream(e)
	} else if err := s.show(e, x); err != nil {
		return err
	}
	if e.Action == testjson.ActionBuild {
		fmt.Fprint(s.out, e.Output)
	}
	if e.Elapsed < 0 { // the library ends a test that ran when its package ended
		fmt.Fprintf(s.out, "--- FAIL: %s (did not finish)\n", e.Test)
	}
	return s.digest.add(e, x)
}

// stream prints output, and the name of its test, which test2json removes.
func (s *summary) stream(e testjson.TestEvent) {
	if e.Action != testjson.ActionOutput {
		return
	}
	if e.Test != s.shown && e.Test != "" && !framing.MatchString(e.Output) {
		fmt.Fprintf(s.out, "=== NAME  %s\n", e.Test)
	}
	s.shown = e.Test
	fmt.Fprint(s.out, e.Output)
}

// show prints a line for each package and each slow test, and the output of failures.
func (s *summary) show(e testjson.TestEvent, x *testjson.Execution) error {
	if err := s.format.Format(e, x); err != nil {
		return err
	}
	// The library prints tests that failed, and neither packages nor tests that were skipped.
	if text, failed := failure(e, x); failed && (e.PackageEvent() || e.Action == testjson.ActionSkip) {
		fmt.Fprint(s.out, text)
	}
	if !e.PackageEvent() && e.Elapsed >= slow {
		fmt.Fprintf(s.out, "     %s %s after %.0f s\n", e.Action, e.Test, e.Elapsed)
	}
	return nil
}

// failure returns the output of a test that the event ends without success, or of a package
// that failed without a failed test.
func failure(e testjson.TestEvent, x *testjson.Execution) (text string, failed bool) {
	pkg, id := x.Package(e.Package), 0
	switch {
	case e.Action == testjson.ActionFail && e.PackageEvent():
		failed = pkg.TestMainFailed()
	case e.Action == testjson.ActionFail:
		id, failed = pkg.LastFailedByName(e.Test).ID, true
	case e.Action == testjson.ActionSkip && !e.PackageEvent():
		id, failed = pkg.Skipped[len(pkg.Skipped)-1].ID, true
	}
	var b strings.Builder
	if failed {
		_ = pkg.WriteOutputTo(&b, id) // a Builder returns no error
	}
	return b.String(), failed
}
